"""Tiny networks with BERT's three inputs, as `.tflite` models, and what an interpreter computes."""

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import tensorflow as tf

from bert_tf.export.litert.conversion import INPUTS
from bert_tf.export.litert.metadata import with_metadata
from bert_tf.text import Tokenizer
from tests import tiny

LENGTH = 16
LABELS = ("bad", "fair", "good")
OUTPUT = "probabilities"


class Network(tf.Module):
    """Embeds ids and segment ids, averages over the mask, and computes [batch, outputs]."""

    def __init__(self, last=tf.nn.softmax):
        super().__init__()
        vocabulary_size, outputs = len(tiny.VOCABULARY), len(LABELS)
        source = np.random.default_rng(0)
        self.words = tf.Variable(source.normal(size=[vocabulary_size, 8]).astype("float32"))
        self.segments = tf.Variable(source.normal(size=[2, 8]).astype("float32"))
        self.inner = tf.Variable(source.normal(size=[8, 256]).astype("float32"))
        self.outer = tf.Variable(source.normal(size=[256, outputs]).astype("float32") / 16)
        self.last = last

    def scores(self, ids, mask, segment_ids):
        vectors = tf.gather(self.words, ids) + tf.gather(self.segments, segment_ids)
        weights = tf.cast(mask, tf.float32)[:, :, None]
        mean = tf.reduce_sum(vectors * weights, 1) / tf.reduce_sum(weights, 1)
        return {OUTPUT: self.last(tf.nn.relu(mean @ self.inner) @ self.outer)}


class Echo(tf.Module):
    """Gives back the ids, as numbers that MediaPipe takes for an embedding."""

    def scores(self, ids, mask, segment_ids):
        return {OUTPUT: tf.cast(ids * mask + segment_ids, tf.float32)}


def serving(module, length=LENGTH, batch=1, dtype=tf.int32):
    """`module.scores` for inputs [batch, length]."""
    specs = [tf.TensorSpec([batch, length], dtype, name) for name in INPUTS]
    return tf.function(module.scores, input_signature=specs)


def converted(module, setting=None, **form):
    """A model of one signature; `setting` is given the converter."""
    function = serving(module, **form).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module)
    if setting is not None:
        setting(converter)
    return converter.convert()


def converted_for_lengths(module, lengths, folder):
    """A model with one signature for each length; each has a subgraph."""
    functions = {f"length_{each}": serving(module, each) for each in lengths}
    module.functions = functions
    tf.saved_model.save(module, str(folder), signatures=functions)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder), [*functions])
    return converter.convert()


def described(
    model: bytes,
    vocabulary: Sequence[str] = tiny.VOCABULARY,
    labels: Sequence[str] | None = LABELS,
    settings: Mapping = MappingProxyType({"class": "TextClassifier"}),
) -> bytes:
    """The model with metadata; without labels it is an embedder."""
    files = {"vocab.txt": "".join(f"{piece}\n" for piece in vocabulary)}
    if labels is not None:
        files["labels.txt"] = "".join(f"{label}\n" for label in labels)
    # MediaPipe finds the inputs by their names in the metadata, whatever their order here.
    inputs = {name: f"The {name} of a text." for name in reversed(INPUTS)}
    outputs = {OUTPUT: "What is computed."}
    about = "Tiny", "A network for tests."
    return with_metadata(model, settings, files, about, inputs, outputs)


def interpreter(content: bytes):
    with warnings.catch_warnings():  # TensorFlow recommends another package.
        warnings.simplefilter("ignore")
        return tf.lite.Interpreter(model_content=content)


def answers(content: bytes, tokenizer: Tokenizer, text: str, length: int | None = LENGTH):
    """The interpreter's outputs for a text: float32 [outputs]; None is the length of the text."""
    ids = tokenizer.tokenize([text]).to_list()[0]
    size = length or len(ids) + 2
    row = [tokenizer.cls_id, *ids[: size - 2], tokenizer.sep_id]
    padded = np.zeros([1, size], np.int32)
    padded[0, : len(row)] = row
    mask = (np.arange(size) < len(row)).astype(np.int32)[None]
    loaded = interpreter(content)
    runner = loaded.get_signature_runner()
    return runner(ids=padded, mask=mask, segment_ids=np.zeros_like(padded))[OUTPUT][0]
