"""The tokenizer that belongs to a checkpoint."""

import os

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.vocabularies import is_lower_case
from bert_tf.errors import UserError
from bert_tf.text import Tokenizer


def read_tokenizer(path: str | os.PathLike) -> Tokenizer:
    """The tokenizer of the checkpoint at `path`, with its vocabulary and its casing.

    Raises:
        UserError: as `reading.find` and `tokenizer_of`.
    """
    return tokenizer_of(reading.find(path))


def tokenizer_of(checkpoint: reading.Checkpoint) -> Tokenizer:
    """The tokenizer of a checkpoint.

    A checkpoint that does not record its casing is cased if a piece of its vocabulary has a capital
    letter.

    Raises:
        UserError: the checkpoint has no vocabulary, a damaged one, or not the one that it was
            trained with.
    """
    vocabulary = checkpoint.read_vocabulary()
    if vocabulary is None:
        raise UserError(f"{checkpoint.folder} has no vocabulary; copy its vocab.txt there")
    lower_case = checkpoint.description.lower_case
    return Tokenizer(vocabulary, is_lower_case(vocabulary) if lower_case is None else lower_case)
