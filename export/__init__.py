"""Trained models -> SavedModels that take strings and return answers, and files for phones.

Task models have a method `export`; `bert-tf export` and `python -m export` write what is at a path.
What is written needs only TensorFlow and tensorflow-text to run: the tokenizer and the decoding are
in the graph, and nothing of bert_tf or Keras is in the file.
"""

# The formats of an export.
SAVED_MODEL, LITERT = FORMATS = ("tf_saved_model", "litert")
# The precisions of a LiteRT file, and those of either format.
LITE_PRECISIONS = ("float32", "float16", "int8")
PRECISIONS = ("bfloat16", *LITE_PRECISIONS)
# What an export does; see `bert_tf.export.run.export_run`.
KINDS = ("task", "hub", "mlm", "nsp", "embedding")
