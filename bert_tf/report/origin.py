"""What a fine-tuned run started from: which pre-training, and how far it had come."""

import dataclasses
from pathlib import Path

from bert_tf.checkpoints import of_run
from bert_tf.config.run import PretrainingRun, RunConfig
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.runs.run_folder import RunFolder

BERT = "masked LM and next sentence (BERT)"
NO_NSP = "no next sentence"
LEFT_TO_RIGHT = "left-to-right, no next sentence"
RIGHT_TO_LEFT = "right-to-left, no next sentence"
SIDE_BY_SIDE = "both directions side by side"
NONE = "no pre-training"
# Appended to one of these where a BiLSTM was added for the task.
BILSTM = " + BiLSTM"
# In the order of the paper's table 5, followed by what the table does not have.
OBJECTIVES = (
    BERT,
    NO_NSP,
    LEFT_TO_RIGHT,
    LEFT_TO_RIGHT + BILSTM,
    RIGHT_TO_LEFT,
    SIDE_BY_SIDE,
    NONE,
)

_ONE_WAY = {
    "left_to_right": LEFT_TO_RIGHT,
    "right_to_left": RIGHT_TO_LEFT,
    "side_by_side": SIDE_BY_SIDE,
}


@dataclasses.dataclass(frozen=True)
class Origin:
    """The pre-training behind a run.

    Attributes:
        objective: one of `OBJECTIVES`, or one of them with a BiLSTM.
        steps: updates that it had made; 0 where there was none, None where that is not known.
        complete: whether these were all of them.
        perplexity: of its language model in the end, where that is known.
        folder: of its run, or of the two that were put side by side; None where there was none.
    """

    objective: str
    steps: int | None
    complete: bool = True
    perplexity: float | None = None
    folder: Path | None = None


def origin_of(config: RunConfig, encoder: EncoderConfig) -> Origin | None:
    """The origin of a fine-tuned run; None where it is not a pre-training of bert_tf.

    Args:
        config: the run's.
        encoder: the sizes of what it trained.
    """
    if config.task == "pretraining":
        return None
    checkpoint = config.source
    top = BILSTM if encoder.bilstm else ""
    if checkpoint is None:
        return Origin(NONE + top, 0)
    if encoder.attention == "side_by_side":
        return Origin(SIDE_BY_SIDE + top, None, folder=Path(checkpoint).resolve())
    path = Path(checkpoint)
    step = _step(path)
    try:
        run = RunFolder.open(path if step is None else path.parent.parent)
        # The steps of a run by epochs are known from its last checkpoint alone.
        total = run.config.train.steps or _step(of_run.newest(run.path))
    except UserError:
        return None
    if not isinstance(run.config, PretrainingRun):
        return None
    objective = _ONE_WAY.get(encoder.attention)
    objective = objective or (BERT if run.config.data.next_sentence else NO_NSP)
    metrics = run.read_metrics() or {}
    steps = total if step is None else step
    return Origin(
        objective + top, steps, steps == total, metrics.get("perplexity"), run.path.resolve()
    )


def _step(checkpoint: Path) -> int | None:
    """The step of one checkpoint of a run; None of any other path."""
    number = checkpoint.name.removeprefix("step-")
    return int(number) if number != checkpoint.name and number.isdigit() else None
