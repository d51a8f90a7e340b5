"""`bert-tf pretrain`: from a corpus to a pre-trained encoder."""

import contextlib
import functools
import itertools
import os

import numpy as np
import tensorflow as tf

from bert_tf.config.imported import import_all
from bert_tf.config.run import PretrainingRun
from bert_tf.console import logger
from bert_tf.data.corpora.corpus import TFRECORD, TOKEN_SHARDS
from bert_tf.data.corpora.pretraining_data import open_data, shards_folder
from bert_tf.data.corpora.shard_data import ShardData
from bert_tf.data.corpora.shard_writing import check_out
from bert_tf.data.corpora.token_shards import MANIFEST
from bert_tf.data.records.data import RecordData
from bert_tf.errors import UserError
from bert_tf.io.atomic import remove_folder, write_text
from bert_tf.io.files import read_text
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.optimization import make_optimizer
from bert_tf.runs import fingerprint, setup
from bert_tf.runs.run_folder import RunFolder
from bert_tf.text import Tokenizer
from bert_tf.training.checkpointing import TRAINING_DATA
from bert_tf.training.distributed import Cluster, assemble
from bert_tf.training.evaluations import Evaluations, Metrics
from bert_tf.training.loop import Phase, train
from bert_tf.training.strategies import divided

_DEV_STEPS = 20  # held-out batches in an evaluation
_SAMPLE_STEPS = 8  # training batches that show how many tokens a batch has


def pretrain(config: PretrainingRun, out: str | os.PathLike, at_start: bool = False) -> Metrics:
    """Pre-trains as `config` says, in the run folder `out`; resumes an interrupted run.

    Returns:
        The final metrics on held-out text, as in `metrics.json`: `loss`, and for each head
        (`masked_lm`, `next_sentence`) its loss and accuracy, and the masked LM's `perplexity`.
        If no text is held out, they are measured on the batches that would come next. With
        `at_start`, `perplexity_before` is the perplexity of the initial weights.

    Raises:
        UserError: a mistake in the configuration, the data or the folder.
        Preempted: SIGTERM ended the run.
    """
    if config.searched:
        raise UserError(
            f"train.{next(iter(config.searched))} is a list; pre-training requires one value"
        )
    cluster = assemble(config.train)
    import_all(itertools.chain(*config.train.named.values()))
    with cluster.losses_explained(), RunFolder.shared(out, config, cluster) as run:
        return _pretrain(run, cluster, at_start)


def _pretrain(run: RunFolder[PretrainingRun], cluster: Cluster, at_start: bool) -> Metrics:
    config, settings = run.config, run.config.train
    setup.seed_everything(settings)
    tokenizer = setup.make_tokenizer(run)
    with cluster.strategy.scope():
        encoder = setup.make_encoder(run, tokenizer)
        model = PreTrainer(encoder, next_sentence=config.data.next_sentence)
    parts = _open_parts(run, tokenizer, encoder.config.attention, cluster)
    epochs_a_step = sum(share / data.steps_per_epoch for share, data in parts)
    steps = setup.total_updates(settings, 1, epochs_a_step)
    with cluster.strategy.scope():
        setup.load_initial_weights(run, model)
        model.compile(
            optimizer=make_optimizer(settings, steps),
            accumulation_steps=settings.accumulation_steps,
            rematerialize=settings.rematerialize,
        )
    data = parts[0][1]
    if isinstance(data, RecordData):
        source = fingerprint.of_sizes(data.files)
    else:  # the manifest of token shards has the checksums of all shards
        source = fingerprint.of_files([shards_folder(config, run.tokens) / MANIFEST])
    evaluations = Evaluations(settings.eval_steps or settings.checkpoint_steps, at_start=at_start)
    with contextlib.ExitStack() as errors:
        for _, data in parts:
            errors.enter_context(data.explained_errors())
        sources = {TRAINING_DATA: source}
        checkpoints = setup.make_checkpoints(run, model, tokenizer, cluster.chief, sources)
        phases = _phases(parts, steps, model, cluster)
        callbacks = setup.make_callbacks(run, steps)
        updated = train(
            run.path, settings, model, checkpoints, phases, evaluations, cluster, callbacks
        )
    (first, before), (_, metrics) = evaluations.results[0], evaluations.results[-1]
    if at_start and first == 0:
        metrics = {**metrics, "perplexity_before": before["perplexity"]}
    cluster.from_chief(lambda: run.finish(metrics, updated))
    return metrics


def evaluate(model: PreTrainer, batches: tf.data.Dataset) -> Metrics:
    """Losses and accuracies of both heads on twenty batches, and the masked LM's perplexity."""
    # A second model for evaluation would double the memory. This one shares the means of training.
    results = model.evaluate(batches, steps=_DEV_STEPS, verbose=0, return_dict=True)
    model.reset_metrics()
    metrics = {name: float(value) for name, value in results.items()}
    return metrics | {"perplexity": float(np.exp(metrics["masked_lm_loss"]))}


_Part = tuple[float, ShardData | RecordData]  # a share of the steps, and its data


def _open_parts(
    run: RunFolder[PretrainingRun], tokenizer: Tokenizer, attention: str, cluster: Cluster
) -> list[_Part]:
    """The data of each phase; text is tokenized first, by the chief."""
    config, settings = run.config, run.config.train
    opened: list[ShardData | RecordData] = []

    def open_first() -> None:
        if cluster.chief and not run.has_saved:
            _forget_other_tokens(run, tokenizer)
        opened.append(open_data(config, run.tokens, tokenizer, attention))

    cluster.from_chief(open_first)
    if not opened:
        open_first()
    data = opened[0]
    if settings.long_length is None:
        return [(1.0, data)]
    predictions = config.data.max_predictions_per_seq
    if predictions is not None:
        predictions = round(predictions * settings.long_length / settings.max_length)
    longer = config.data.model_copy(update={"max_predictions_per_seq": predictions})
    long_data = open_data(
        config.model_copy(update={"data": longer}),
        run.tokens,
        tokenizer,
        attention,
        settings.long_batch_size or settings.batch_size,
        settings.long_length,
    )
    return [(1 - settings.long_fraction, data), (settings.long_fraction, long_data)]


def _forget_other_tokens(run: RunFolder[PretrainingRun], tokenizer: Tokenizer) -> None:
    """Removes tokens of another text or vocabulary than the run has now."""
    if run.config.data.format in (TOKEN_SHARDS, TFRECORD):
        return
    source = fingerprint.of_corpus(run.config, tokenizer)
    if run.tokens.exists():
        if run.tokens_source.is_file() and read_text(run.tokens_source) == source:
            return
        check_out(run.tokens)
        remove_folder(run.tokens)
    write_text(run.tokens_source, source)


def _phases(parts: list[_Part], steps: int, model: PreTrainer, cluster: Cluster) -> list[Phase]:
    phases = []
    ends = itertools.accumulate(share for share, _ in parts)
    for end, (_, data) in zip(ends, parts, strict=True):
        dev = divided(cluster.strategy, functools.partial(_dev_batches, data, steps))
        sample = [inputs["input_mask"] for inputs, _ in data.dataset().take(_SAMPLE_STEPS)]
        phases.append(
            Phase(
                end=round(end * steps),
                batches_from=data.dataset,
                evaluate=functools.partial(evaluate, model, dev),
                tokens=float(np.mean([np.sum(mask) for mask in sample])),
                together=True,
            )
        )
    return phases


def _dev_batches(
    data: ShardData | RecordData, steps: int, part: int, parts: int
) -> tf.data.Dataset:
    """The batches to evaluate on, repeated; one device of several gets `part::parts` of each."""
    dev = data.dev_dataset(_DEV_STEPS, part, parts)
    if dev is None:
        logger.info("no text is held out; evaluation uses the next training batches instead")
        dev = data.dataset(steps, part, parts).take(_DEV_STEPS)
    return dev.repeat()
