"""The program with which the demo asks its SavedModel; it is written into the demo's folder."""

ASK = '''\
"""python ask.py SAVED_MODEL TEXT ... : needs only tensorflow and tensorflow_text."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
answers = model.signatures["serving_default"](text=tf.constant(sys.argv[2:]))
for text, label, probabilities in zip(
    sys.argv[2:], answers["label"].numpy(), answers["probabilities"].numpy()
):
    print(f"{label.decode():>12}  {probabilities.max():4.0%}  {text[:80]}")
'''
