"""Callbacks, schedules and functions of another package, for runs to name."""

import json

import keras
import tensorflow as tf


class Recorder(keras.callbacks.Callback):
    """Writes each call, with its number and the names of its logs, as a line of a file."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def note(self, method, number=None, logs=None):
        with open(self.path, "a") as file:
            file.write(json.dumps([method, number, logs or {}]) + "\n")

    def on_train_begin(self, logs=None):
        assert self.model.optimizer is not None
        self.note("train_begin", self.params["epochs"])

    def on_train_end(self, logs=None):
        self.note("train_end")

    def on_epoch_begin(self, epoch, logs=None):
        self.note("epoch_begin", epoch)

    def on_epoch_end(self, epoch, logs=None):
        self.note("epoch_end", epoch, logs)

    def on_train_batch_begin(self, batch, logs=None):
        self.note("batch_begin", batch)

    def on_train_batch_end(self, batch, logs=None):
        self.note("batch_end", batch, logs)

    def on_test_begin(self, logs=None):
        self.note("test_begin")

    def on_test_end(self, logs=None):
        self.note("test_end", None, logs)


class Fails(keras.callbacks.Callback):
    """Raises an error in one method, at one call."""

    def __init__(self, method, at=0):
        super().__init__()
        calls = []

        def fail(*arguments):
            calls.append(arguments)
            if len(calls) == at + 1:
                raise RuntimeError("the tracker\nis gone")

        setattr(self, method, fail)


class Stops(keras.callbacks.Callback):
    """Ends the training after some updates or epochs."""

    def __init__(self, batches=None, epochs=None):
        super().__init__()
        self.left = {"batch": batches, "epoch": epochs}

    def count(self, what):
        if self.left[what] is not None:
            self.left[what] -= 1
            self.model.stop_training |= self.left[what] == 0

    def on_train_batch_end(self, batch, logs=None):
        self.count("batch")

    def on_epoch_end(self, epoch, logs=None):
        self.count("epoch")


class Zeroes(keras.callbacks.Callback):
    """Makes the first weight zero when training has ended."""

    def on_train_end(self, logs=None):
        weight = self.model.trainable_variables[0]
        weight.assign(tf.zeros_like(weight))


def recorder_of(run):
    """A function that makes a callback, with the folder of the run."""
    return Recorder(f"{run}/made.jsonl")


class Constant(keras.optimizers.schedules.LearningRateSchedule):
    """The same rate in every step."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, step):
        return tf.constant(self.rate, tf.float32)

    def get_config(self):
        return {"rate": self.rate}


def shape(names):
    """A function whose result is no object of Keras."""
    return names


NUMBER = 3
