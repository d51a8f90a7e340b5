"""From configuration to tokenizer, encoder and optimizer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.description import describe, vocabulary_hash
from bert_tf.config.run import RunConfig
from bert_tf.config.train import PretrainingTrain, TrainConfig
from bert_tf.console import logger
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import POLICIES, EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import read_vocabulary
from bert_tf.optimization import values_of
from bert_tf.runs.run_folder import RunFolder
from bert_tf.text import Tokenizer
from bert_tf.training.callbacks import Named
from bert_tf.training.checkpointing import Checkpoints

Run = RunFolder[RunConfig]


def seed_everything(settings: TrainConfig) -> None:
    """Seeds all random numbers of this process with `train.seed`."""
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()


def make_tokenizer(run: Run) -> Tokenizer:
    """The run's own copy of the vocabulary, with the configured settings."""
    pieces = read_vocabulary(run.vocabulary, of_model=True)
    return Tokenizer.of(pieces, run.config.tokenizer.settings)


def fixed_length(settings: TrainConfig) -> int | None:
    """Tokens of every training row where shapes must be known beforehand, as a TPU needs them."""
    return settings.max_length if settings.strategy == "tpu" else None


def make_encoder(run: Run, tokenizer: Tokenizer) -> Encoder:
    """An encoder with new weights."""
    sizes, settings = encoder_config(run, tokenizer), run.config.train
    check_lengths(settings, sizes)
    layout = "unpadded" if fixed_length(settings) is None else "padded"
    return encoder_for(sizes, layout, dtype=POLICIES[settings.precision])


def encoder_config(run: Run, tokenizer: Tokenizer) -> EncoderConfig:
    """The sizes of a run's encoder: the configuration's, or its checkpoint's."""
    initial, model = run.initial, run.config.model
    sizes: dict[str, Any] = {}
    if initial is not None:
        _check_vocabulary(initial, tokenizer)
        sizes = initial.encoder.to_dict()
        if model.preset:
            _check_preset(model.preset, initial)
    elif model.preset:
        sizes = EncoderConfig.preset(model.preset).to_dict()
    elif model.hidden_size is not None:
        sizes = {"intermediate_size": 4 * model.hidden_size}
    if initial is None:
        sizes["vocab_size"] = tokenizer.vocab_size
    try:
        return EncoderConfig(**sizes | model.changes())
    except UserError as error:
        raise UserError(f"the sizes under `model` are wrong: {error}") from None


def check_lengths(settings: TrainConfig, sizes: EncoderConfig) -> None:
    """Raises a UserError if sequences are longer than the encoder's positions."""
    sizes.check_length("train.max_length", settings.max_length)
    if isinstance(settings, PretrainingTrain) and settings.long_length:
        sizes.check_length("train.long_length", settings.long_length)


def load_initial_weights(run: Run, model: keras.Model, labels: Sequence[str] = ()) -> None:
    """Fills `model`, whose classes are `labels`, from the initial checkpoint, if there is one."""
    if run.initial is not None:
        report = run.initial.fill(model, labels)
        logger.info(f"{run.config.source}: {report}")


def make_checkpoints(
    run: Run, model: keras.Model, tokenizer: Tokenizer, chief: bool, data: Mapping[str, str]
) -> Checkpoints:
    """The `Checkpoints` that save and restore the run; `data` are fingerprints by name."""
    description, settings = describe(model, tokenizer), run.config.train
    kept, every = settings.checkpoints_kept, settings.checkpoint_steps
    return Checkpoints(run.checkpoints, description, kept, every, chief, data)


def make_callbacks(run: Run, steps: int) -> Named:
    """The callbacks of other packages, with their names."""
    named, kind = run.config.train.named["callbacks"], keras.callbacks.Callback
    values = values_of(run.config.train, steps) | {"run": str(run.path)}
    return [(each.name, each.make(kind, values)) for each in named]


def total_updates(settings: TrainConfig, updates: int, epochs: float = 1.0) -> int:
    """The updates of a whole run, where `updates` of them make `epochs`; at least one."""
    return settings.steps or max(1, round((settings.epochs or 0) * updates / epochs))


def _check_preset(preset: str, checkpoint: Checkpoint) -> None:
    """Refuses a preset of other sizes; the rest (form of GELU, attention) is the checkpoint's."""
    named, found = EncoderConfig.preset(preset), checkpoint.encoder
    for size in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
        if getattr(named, size) != getattr(found, size):
            raise UserError(
                f"model.preset {preset} has {size} {getattr(named, size)}, but the checkpoint "
                f"{checkpoint.folder} has {getattr(found, size)}; remove model.preset"
            )


def _check_vocabulary(checkpoint: Checkpoint, tokenizer: Tokenizer) -> None:
    known = checkpoint.description
    theirs = checkpoint.read_vocabulary()
    hashed, own = vocabulary_hash(theirs) if theirs else known.vocabulary, tokenizer.vocabulary
    # A checkpoint may have more embeddings than pieces, to make their number a rounder one.
    spare = checkpoint.encoder.vocab_size - len(own)
    if spare and not (spare > 0 and hashed == vocabulary_hash(own)):
        raise UserError(
            f"the vocabulary has {len(own)} pieces, but the checkpoint {checkpoint.folder} has "
            f"{len(own) + spare}; set tokenizer.vocab to the checkpoint's own vocabulary"
        )
    if hashed not in (None, vocabulary_hash(own)):
        raise UserError(
            f"the vocabulary is as large as that of the checkpoint {checkpoint.folder}, but has "
            "different pieces; set tokenizer.vocab to the checkpoint's own vocabulary"
        )
    trained = known.tokenizer_settings(own)
    wrong = tokenizer.settings.first_difference(trained)
    if wrong and not (wrong == "lower_case" and known.lower_case is None):
        raise UserError(
            f"tokenizer.{wrong} is {json.dumps(getattr(tokenizer.settings, wrong))}, but "
            f"{checkpoint.folder} was trained with {json.dumps(getattr(trained, wrong))}; set that"
        )
