"""Trained models -> SavedModels that take strings and return answers.

    import export
    export.save(model, tokenizer, "saved_models/reviews", labels=["bad", "good"])

What is written needs only TensorFlow and tensorflow-text to run: the tokenizer and the decoding
are in the graph, and nothing of bert_tf or Keras is in the file.
"""

from bert_tf.quiet import is_command_starting

__all__ = ["save"]

# The help of `python -m export` need not wait for TensorFlow.
if not is_command_starting():
    from export.saving import save
