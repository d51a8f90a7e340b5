"""python ask.py SAVED_MODEL TEXT ... : needs only tensorflow and tensorflow_text."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import tensorflow_text  # noqa: F401 - the operations of the tokenizer

texts = sys.argv[2:]
model = tf.saved_model.load(sys.argv[1])
answers = model.signatures["serving_default"](text=tf.constant(texts))
labels, probabilities = answers["label"].numpy(), answers["probabilities"].numpy()
for text, label, shares in zip(texts, labels, probabilities, strict=True):
    print(f"{label.decode():>12}  {shares.max():4.0%}  {text[:80]}")
