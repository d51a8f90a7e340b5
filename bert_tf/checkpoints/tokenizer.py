"""The tokenizer that belongs to a checkpoint."""

import os

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.vocabularies import is_lower_case
from bert_tf.errors import UserError
from bert_tf.text import Tokenizer


def read_tokenizer(path: str | os.PathLike) -> Tokenizer:
    """The tokenizer of the checkpoint at `path`, with its vocabulary and its casing.

    A checkpoint that does not tell its casing is cased if a piece of its vocabulary has a capital
    letter.

    Raises:
        UserError: as `reading.find`; or it has no vocabulary, or a damaged one.
    """
    checkpoint = reading.find(path)
    vocabulary = checkpoint.read_vocabulary()
    if vocabulary is None:
        raise UserError(f"{path} has no vocabulary; copy its vocab.txt there")
    lower_case = checkpoint.description.lower_case
    return Tokenizer(vocabulary, is_lower_case(vocabulary) if lower_case is None else lower_case)
