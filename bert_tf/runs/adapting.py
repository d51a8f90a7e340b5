"""`bert-tf adapt`: a checkpoint goes on pre-training on text of a domain.

Words are masked whole, there is no next sentence prediction, and some text is held out. All else is
a run of `bert-tf pretrain`: its `config.yaml` trains the same weights there.
"""

import json
import os
from collections.abc import Sequence

from bert_tf.config.reading import config_of
from bert_tf.config.run import PretrainingRun
from bert_tf.config.yaml_files import Tree
from bert_tf.console import logger
from bert_tf.data.corpora.corpus import find_files
from bert_tf.errors import UserError
from bert_tf.runs.pretraining import pretrain
from bert_tf.training.evaluations import Metrics

# Shares of the tokens to predict: BERT's, and the one that "Should You Mask 15% in Masked Language
# Modeling?" (Wettig et al. 2022) found best for large models.
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
        checkpoint: as `init.checkpoint`. One without a head for masked words gets a new one.
        text: files, globs or folders.
        out: the run folder.
        format: as `data.format`. None is `jsonl` for files with this ending; of other files, each
            is a document if they are 40 or more; of fewer, a blank line ends a document too.
        masking: share of the tokens to predict, from 0.15 to 0.4.
        settings: further keys of the run, such as `train.max_length=256`.
        **train: keys of `train`, such as `steps` or `epochs` (one epoch by default); None leaves
            them at their defaults.

    Returns:
        As `pretrain`, with the perplexity of the held-out text before.

    Raises:
        UserError: as `pretrain`, or the share is outside of these.
    """
    if not _LEAST <= masking <= _MOST:
        raise UserError(
            f"--masking {masking:g} is outside {_LEAST} to {_MOST}; give a share between, or set "
            "data.masked_lm_prob in a configuration for bert-tf pretrain"
        )
    paths, given = [*map(os.fspath, text)], {n: v for n, v in train.items() if v is not None}
    data = {"path": paths, "format": format or _format_of(paths), "masked_lm_prob": masking}
    data |= {"next_sentence": False, "whole_word_masking": True}
    given = given if {"steps", "epochs"} & given.keys() else {"epochs": 1, **given}
    keys = {"init.checkpoint": os.fspath(checkpoint)}
    keys |= {f"data.{n}": v for n, v in data.items()} | {f"train.{n}": v for n, v in given.items()}
    own = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    tree = Tree({"task": "pretraining"}, {(): "bert-tf adapt"})
    config = config_of(tree, [*own, *settings])
    assert isinstance(config, PretrainingRun)
    metrics = pretrain(config, out, at_start=True)
    logger.info(
        f"perplexity of the held-out text: {metrics.get('perplexity_before', float('nan')):.4g} "
        f"before, {metrics['perplexity']:.4g} after"
    )
    return metrics


def _format_of(paths: list[str]) -> str:
    """The format of files by their endings and their number, which is printed."""
    files = find_files(paths)
    is_json = all(file.name.removesuffix(".gz").endswith(".jsonl") for file in files)
    plain = "document_per_file" if len(files) >= _MANY else "sentence_per_line"
    found = "jsonl" if is_json else plain
    logger.info(f"the text is read as {found} ({len(files)} files); --format changes that")
    return found
