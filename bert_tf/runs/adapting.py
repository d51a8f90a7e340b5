"""`bert-tf adapt`: a checkpoint goes on pre-training on text of a domain.

Words are masked whole, there is no next sentence prediction, and some text is held out, whose
perplexity is measured before and after. All else is a run of `bert-tf pretrain`: its `config.yaml`
trains the same weights there.
"""

import os
from collections.abc import Sequence

from bert_tf.config import yaml_files
from bert_tf.config.reading import config_of
from bert_tf.config.run import PretrainingRun
from bert_tf.console import logger
from bert_tf.data.corpora.corpus import find_files
from bert_tf.errors import UserError
from bert_tf.runs.pretraining import pretrain
from bert_tf.training.evaluations import Metrics

# The shares of the tokens to predict that "Should You Mask 15% in Masked Language Modeling?"
# (Wettig et al. 2022) compares, and the one of the paper.
_LEAST, _MOST = 0.15, 0.4
# With fewer files the two that are held out at least would be more than a twentieth of the text.
_MANY = 40


def adapt(
    checkpoint: str | os.PathLike,
    text: Sequence[str | os.PathLike],
    out: str | os.PathLike,
    format: str | None = None,
    masking: float = _LEAST,
    settings: Sequence[str] = (),
    **train: float | None,
) -> Metrics:
    """Continues the pre-training of a checkpoint on text; the same call resumes what was stopped.

    Args:
        checkpoint: what `init.checkpoint` of a run takes. A checkpoint without a head for masked
            words gets a new one.
        text: files, globs or folders.
        out: the run folder.
        format: as `data.format`. None is `jsonl` for files with this ending; of other files, each
            is a document if they are 40 or more; of fewer, a blank line ends a document too.
        masking: share of the tokens to predict, from 0.15 to 0.4.
        settings: further keys of the run, such as `train.max_length=256`.
        **train: keys of `train`: `steps` or `epochs` (one epoch by default), `batch_size`,
            `learning_rate`; None leaves them at their defaults.

    Returns:
        As `pretrain`; `perplexity_before` and `perplexity` are those of the masked tokens of the
        held-out text, before and after.

    Raises:
        UserError: as `pretrain`, or the share is outside of these.
    """
    if not _LEAST <= masking <= _MOST:
        raise UserError(
            f"--masking {masking:g} is outside {_LEAST} to {_MOST}; give a share between, or set "
            "data.masked_lm_prob in a configuration for bert-tf pretrain"
        )
    given = {name: value for name, value in train.items() if value is not None}
    if not {"steps", "epochs"} & given.keys():
        given["epochs"] = 1
    options: dict[tuple[str, ...], tuple[str, object]] = {
        ("task",): ("task", "pretraining"),
        ("init", "checkpoint"): ("CHECKPOINT", os.fspath(checkpoint)),
        ("data", "path"): ("--text", [*map(os.fspath, text)]),
        ("data", "format"): ("--format", format or _format_of(text)),
        ("data", "next_sentence"): ("", False),
        ("data", "whole_word_masking"): ("", True),
        ("data", "masked_lm_prob"): ("--masking", masking),
    }
    for name, value in given.items():
        options["train", name] = f"--{name.replace('_', '-')}", value
    config = config_of(yaml_files.of_options(options), settings)
    assert isinstance(config, PretrainingRun)
    metrics = pretrain(config, out, at_start=True)
    if "perplexity_before" in metrics:
        logger.info(
            f"perplexity of the held-out text: {metrics['perplexity_before']:.4g} before, "
            f"{metrics['perplexity']:.4g} after"
        )
    return metrics


def _format_of(text: Sequence[str | os.PathLike]) -> str:
    """The format of files by their endings and their number, which is printed."""
    files = find_files([*map(os.fspath, text)])
    if all(file.name.removesuffix(".gz").endswith(".jsonl") for file in files):
        found = "jsonl"
    else:
        found = "document_per_file" if len(files) >= _MANY else "sentence_per_line"
    logger.info(f"the text is read as {found} ({len(files)} files); --format changes that")
    return found
