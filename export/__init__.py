"""Trained models -> SavedModels that take strings and return answers.

    import export
    export.save(model, tokenizer, "saved_models/reviews", labels=["bad", "good"])

What is written needs only TensorFlow and tensorflow-text to run: the tokenizer and the decoding
are in the graph, and nothing of bert_tf or Keras is in the file.
"""

from export.save import save

__all__ = ["save"]
