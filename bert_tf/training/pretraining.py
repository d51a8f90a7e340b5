"""`bert-tf pretrain`: from a corpus to a pre-trained encoder."""

import os
from pathlib import Path

import keras
import numpy as np

from bert_tf.checkpoints.description import describe
from bert_tf.config import RunConfig
from bert_tf.data import pretraining_data
from bert_tf.errors import UserError
from bert_tf.models import PreTrainer
from bert_tf.training import setup
from bert_tf.training.callbacks import Metrics
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.fit import report, train
from bert_tf.training.run_folder import RunFolder

# `data.format` of a corpus that `bert-tf pretrain-data` has tokenized already.
TOKEN_SHARDS = "token_shards"
# Batches of the held-out text that an evaluation takes.
_DEV_STEPS = 20


def pretrain(config: RunConfig, out: str | os.PathLike) -> dict[str, float]:
    """Pre-trains as `config` says, in the run folder `out`; resumes what was interrupted.

    Returns:
        The final metrics on held-out text, as in `metrics.json`: `loss`, and for each head
        (`masked_lm`, `next_sentence`) its loss and accuracy, and the masked LM's `perplexity`.

    Raises:
        UserError: whatever the user can mend, in configuration, data or folder.
    """
    if config.search:
        raise UserError(
            f"train.{next(iter(config.search))} is a list; pre-training takes one value"
        )
    run = RunFolder.start(out, config)
    keras.utils.set_random_seed(config.train.seed)
    tokenizer = setup.make_tokenizer(run)
    data = _open_data(run, tokenizer.vocabulary)
    encoder = setup.make_encoder(config, tokenizer)
    model = PreTrainer(encoder, next_sentence=config.data.next_sentence)
    setup.load_initial_weights(config, model)
    steps = config.train.steps or round(config.train.epochs * data.steps_per_epoch)
    model.compile(optimizer=setup.make_optimizer(config.train, steps))
    checkpoints = Checkpoints(
        run.checkpoints, describe(model, tokenizer), config.train.checkpoints_kept
    )
    dev = data.dev_dataset(_DEV_STEPS)
    with data.explained_errors():
        train(
            run,
            model,
            checkpoints,
            data.dataset,
            steps,
            config.train.eval_steps or config.train.checkpoint_steps,
            lambda: evaluate(model, dev),
        )
        metrics = evaluate(model, dev)
    report(run, metrics)
    return metrics


def evaluate(model: PreTrainer, dev) -> Metrics:
    """Losses and accuracies of both heads on held-out batches."""
    # A model of its own for evaluation would double the memory; the means are the same objects.
    metrics = {k: float(v) for k, v in model.evaluate(dev, verbose=0, return_dict=True).items()}
    model.reset_metrics()
    return metrics | {"perplexity": float(np.exp(metrics["masked_lm_loss"]))}


def _open_data(run: RunFolder, vocabulary: tuple[str, ...]) -> pretraining_data.PretrainingData:
    """The run's token shards, made first where the configuration names text."""
    config = run.config
    if config.data.format == TOKEN_SHARDS:
        if not isinstance(config.data.path, str):
            raise UserError("data.path must be one folder where data.format is token_shards")
        folder = Path(config.data.path)
    else:
        folder = run.tokens
        if not folder.exists():
            pretraining_data.build(config, folder)
    data = pretraining_data.PretrainingData(
        folder,
        config.train.batch_size,
        config.train.max_length,
        config.data.max_predictions_per_seq,
        seed=config.train.seed,
        next_sentence=config.data.next_sentence,
        short_probability=config.data.short_seq_prob,
        masking_rate=config.data.masked_lm_prob,
        whole_word_masking=config.data.whole_word_masking,
    )
    lower_case = config.tokenizer.lower_case
    if data.vocabulary != vocabulary or data.lower_case != lower_case:
        raise UserError(
            f"{folder} was tokenized with another vocabulary than {config.tokenizer.vocab}, or "
            f"not with tokenizer.lower_case {str(lower_case).lower()}; run bert-tf pretrain-data "
            "again"
        )
    return data
