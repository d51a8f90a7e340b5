"""`bert-tf adapt`: a run of `bert-tf pretrain` that starts from a checkpoint, on other text."""

import json
import os
from collections.abc import Sequence

from bert_tf.config.reading import config_of
from bert_tf.config.run import PretrainingRun
from bert_tf.config.yaml_files import Tree
from bert_tf.data.corpora.corpus import find_files
from bert_tf.errors import UserError
from bert_tf.runs.pretraining import pretrain
from bert_tf.training.evaluations import Metrics

# Shares of the tokens to predict: BERT's, and the one that "Should You Mask 15% in Masked Language
# Modeling?" (Wettig et al. 2022) found best for large models.
_LEAST, _MOST = 0.15, 0.4


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
        checkpoint, text, out: as `init.checkpoint`, `data.path`, and the run folder.
        format: as `data.format`; None is `jsonl` for files that end so, else `sentence_per_line`.
        masking: share of the tokens to predict, from 0.15 to 0.4.
        settings: further keys of the run, such as `train.max_length=256`.
        **train: keys of `train`, such as `steps`; None is the default. The default is one epoch.

    Returns:
        As `pretrain`, with the perplexity of the held-out text before training.

    Raises:
        UserError: as `pretrain`, or `masking` is out of its range.
    """
    if not _LEAST <= masking <= _MOST:
        raise UserError(
            f"--masking {masking:g} is not from {_LEAST} to {_MOST}; choose such a share, or set "
            "data.masked_lm_prob in a configuration for bert-tf pretrain"
        )
    paths = [os.fspath(path) for path in text]
    is_json = all(".jsonl" in file.name for file in find_files(paths))
    keys = {
        "init.checkpoint": os.fspath(checkpoint),
        "data.path": paths,
        "data.format": format or ("jsonl" if is_json else "sentence_per_line"),
        "data.masked_lm_prob": masking,
        "data.next_sentence": False,
        "data.whole_word_masking": True,
    } | {f"train.{name}": value for name, value in train.items() if value is not None}
    if not {"train.steps", "train.epochs"} & keys.keys():
        keys["train.epochs"] = 1
    given = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    config = config_of(Tree({"task": "pretraining"}, {(): "bert-tf adapt"}), [*given, *settings])
    assert isinstance(config, PretrainingRun)
    return pretrain(config, out, at_start=True)
