"""The vocabulary and the casing of a run, where its configuration leaves them to its checkpoint."""

from typing import TypeVar

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.vocabularies import is_lower_case
from bert_tf.config.run import RunConfig
from bert_tf.errors import UserError
from bert_tf.io.files import read_text
from bert_tf.io.vocabulary import file_text

Kind = TypeVar("Kind", bound=RunConfig)


def with_casing_of(before: RunConfig, config: Kind) -> Kind:
    """The configuration of a run that goes on, with the casing that was decided at its start."""
    if config.tokenizer.lower_case is not None:
        return config
    decided = before.tokenizer.lower_case
    tokenizer = config.tokenizer.model_copy(update={"lower_case": decided})
    return config.model_copy(update={"tokenizer": tokenizer})


def settle(config: Kind) -> tuple[Kind, str]:
    """The configuration with its casing decided, and the text of its vocabulary file.

    If neither the configuration nor the checkpoint gives the casing, the vocabulary decides it.

    Raises:
        UserError: there is no vocabulary where the configuration says, or no checkpoint.
    """
    choice = config.tokenizer
    lower_case = choice.lower_case
    if choice.vocab is not None:
        vocabulary = read_text(choice.vocab, "vocabulary")
    if config.init.checkpoint is not None and (choice.vocab is None or lower_case is None):
        checkpoint = reading.find(config.init.checkpoint)
        if lower_case is None:
            lower_case = checkpoint.description.lower_case
        if choice.vocab is None:
            pieces = checkpoint.read_vocabulary()
            if pieces is None:
                raise UserError(
                    f"{config.init.checkpoint} holds no vocabulary; set tokenizer.vocab to the one "
                    "it was trained with"
                )
            vocabulary = file_text(pieces)
    if lower_case is None:
        lower_case = is_lower_case(vocabulary.split())
    tokenizer = choice.model_copy(update={"lower_case": lower_case})
    return config.model_copy(update={"tokenizer": tokenizer}), vocabulary
