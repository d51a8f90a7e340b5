"""The vocabulary and the tokenizer of a run, from its configuration or its checkpoint."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.layers import chosen, with_layers
from bert_tf.config.run import FinetuningRun, RunConfig
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import file_text, is_lower_case, read_vocabulary
from bert_tf.tasks import from_checkpoint

Kind = TypeVar("Kind", bound=RunConfig)
Find = Callable[[RunConfig], Checkpoint | None]  # opens the initial checkpoint, if there is one


def with_tokenizer_of(before: RunConfig, config: Kind) -> Kind:
    """The configuration of a resumed run, with the settings that were decided at its start."""
    return _with_settings(config, before.tokenizer.model_dump(exclude={"vocab"}))


def _with_settings(config: Kind, settings: Mapping[str, Any]) -> Kind:
    """The configuration with these settings of the tokenizer where it has null."""
    decided = {
        name: value
        for name, value in settings.items()
        if value is not None and getattr(config.tokenizer, name) is None
    }
    return config.model_copy(update={"tokenizer": config.tokenizer.model_copy(update=decided)})


def find_initial(config: RunConfig) -> Checkpoint | None:
    """The opened checkpoint that a run starts from, which may be layers of its teacher, or None."""
    if not config.source:
        return None
    distillation = config.distillation if isinstance(config, FinetuningRun) else None
    if distillation is None or config.source != distillation.teacher:
        return reading.find(config.source)
    teacher = from_checkpoint.find(config.source)
    number, total = config.model.num_hidden_layers, teacher.encoder.num_hidden_layers
    return with_layers(teacher, chosen(total, number, distillation.layers))


def settle(config: Kind, find: Find = find_initial) -> tuple[Kind, str]:
    """The configuration with its tokenizer's settings, and the text of its vocabulary file."""
    choice, checkpoint = config.tokenizer, find(config)
    settings: dict[str, Any] = {}
    if checkpoint is not None:
        known = checkpoint.description
        settings = {"lower_case": known.lower_case, **known.tokenizer}
    if choice.vocab is not None:
        vocabulary = file_text(read_vocabulary(choice.vocab, of_model=checkpoint is not None))
    elif checkpoint is not None:
        pieces = checkpoint.read_vocabulary()
        if pieces is None:
            raise UserError(
                f"{config.source} has no vocabulary; set tokenizer.vocab to the file that it "
                "was trained with"
            )
        vocabulary = file_text(pieces)
    config = _with_settings(config, settings)
    if config.tokenizer.lower_case is None:
        config = _with_settings(config, {"lower_case": is_lower_case(vocabulary.split())})
    return config, vocabulary
