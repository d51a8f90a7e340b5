"""Prints how much the weights of students differ if one or two devices have trained them.

    python -m tests.distillation.two_devices

TensorFlow makes virtual devices only before it starts, so this is a process of its own.
"""

import json

import keras
import numpy as np
import tensorflow as tf

KINDS = ("tags", "ranks", "vectors of pairs")


def trained(kind: str, strategy: tf.distribute.Strategy) -> dict[str, np.ndarray]:
    """The weights of a student after an epoch."""
    # The import computes something; after it, no virtual devices could be made.
    from tests.distillation.test_fit import ALL, data, model, values

    with strategy.scope():
        teacher = model(kind)
        student = teacher.student(1)
        student.compile(optimizer=keras.optimizers.SGD(0.1))
    x, y = data(kind)
    given = (x,) if y is None else (x, y)
    options = {"teacher": teacher, "distillation": ALL, "batch_size": 4, "verbose": 0, "seed": 0}
    student.fit(*given, **options)
    return values(student)


def main() -> None:
    """Trains on both, and prints the differences as JSON."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # TensorFlow groups devices only once in a process.
    single = tf.distribute.OneDeviceStrategy("cpu:0")
    both = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    found = {}
    for kind in KINDS:
        one, two = trained(kind, single), trained(kind, both)
        found[kind] = max(float(np.abs(one[name] - two[name]).max()) for name in one)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
