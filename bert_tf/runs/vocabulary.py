"""The vocabulary and the casing of a run, from its configuration or its initial checkpoint."""

from collections.abc import Callable
from typing import TypeVar

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.layers import chosen, with_layers
from bert_tf.config.run import FinetuningRun, RunConfig
from bert_tf.errors import UserError
from bert_tf.io.files import read_text
from bert_tf.io.vocabulary import file_text, is_lower_case
from bert_tf.tasks import from_checkpoint

Kind = TypeVar("Kind", bound=RunConfig)
# Opens the initial checkpoint of a run, if it has one.
Find = Callable[[RunConfig], Checkpoint | None]


def with_casing_of(before: RunConfig, config: Kind) -> Kind:
    """The configuration of a resumed run, with the casing that was decided at its start."""
    if config.tokenizer.lower_case is not None:
        return config
    return _with_casing(config, before.tokenizer.lower_case)


def _with_casing(config: Kind, lower_case: bool | None) -> Kind:
    tokenizer = config.tokenizer.model_copy(update={"lower_case": lower_case})
    return config.model_copy(update={"tokenizer": tokenizer})


def find_initial(config: RunConfig) -> Checkpoint | None:
    """The opened checkpoint that a run starts from; None if all weights are new.

    For a student that starts from its teacher, it has some of the teacher's layers.

    Raises:
        UserError: as `reading.find`; or the teacher has too few layers.
    """
    if not config.source:
        return None
    distillation = config.distillation if isinstance(config, FinetuningRun) else None
    if distillation is None or config.source != distillation.teacher:
        return reading.find(config.source)
    teacher = from_checkpoint.find(config.source)
    number, total = config.model.num_hidden_layers, teacher.encoder.num_hidden_layers
    return with_layers(teacher, chosen(total, number, distillation.layers))


def settle(config: Kind, find: Find = find_initial) -> tuple[Kind, str]:
    """The configuration with its casing, and the text of its vocabulary file.

    If neither the configuration nor the checkpoint has the casing, the vocabulary decides it.

    Args:
        config: the configuration of the run.
        find: opens the initial checkpoint; it is called only if something is read from it.

    Raises:
        UserError: the vocabulary or the checkpoint that the configuration names is missing.
    """
    choice = config.tokenizer
    lower_case = choice.lower_case
    if choice.vocab is not None:
        vocabulary = read_text(choice.vocab, "vocabulary")
    checkpoint = find(config) if choice.vocab is None or lower_case is None else None
    if checkpoint is not None:
        if lower_case is None:
            lower_case = checkpoint.description.lower_case
        if choice.vocab is None:
            pieces = checkpoint.read_vocabulary()
            if pieces is None:
                raise UserError(
                    f"{config.source} has no vocabulary; set tokenizer.vocab to the file that it "
                    "was trained with"
                )
            vocabulary = file_text(pieces)
    if lower_case is None:
        lower_case = is_lower_case(vocabulary.split())
    return _with_casing(config, lower_case), vocabulary
