"""The section `data`: where the examples are and how to read them; a class for each task family.

"The reference" is google-research/bert: its create_pretraining_data.py, run_classifier.py and
run_squad.py.
"""

import dataclasses

from bert_tf.config.kinds import Count, FilePath, Share
from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """Text to pre-train on, and what is to be predicted of it."""

    # A folder, a file, a glob, or a list of these.
    path: FilePath | tuple[FilePath, ...]
    # How the text is written: see `bert_tf.data.corpus`.
    format: str
    # Share of the documents held out to evaluate on.
    dev_fraction: Share = 0.05
    # Share of the tokens to predict (paper, section 3.1).
    masked_lm_prob: Share = 0.15
    # Most predictions in a sequence; null is what masked_lm_prob asks for at full length. The
    # reference's 20 is that for 128 tokens, and has to be changed by hand for others.
    max_predictions_per_seq: Count | None = None
    # Share of the sequences that are shorter, so that fine-tuning on short texts finds them known.
    short_seq_prob: Share = 0.1
    # Predict whether the second segment follows the first (paper, section 3.1).
    next_sentence: bool = True
    # Mask all pieces of a word or none. Off, as in the paper.
    whole_word_masking: bool = False


@dataclasses.dataclass(frozen=True)
class FinetuningData:
    """Labelled files of one task, in one folder."""

    # The folder; with format tfds, a name such as glue/mnli.
    path: FilePath
    # How the files are written; each task family tells what it reads.
    format: str
    # Names of the files in the folder; null is the format's own, such as train.tsv.
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    # Use only so many rows from the start of the training file; null uses all.
    train_rows: Count | None = None


@dataclasses.dataclass(frozen=True)
class ClassificationData(FinetuningData):
    """One text or two with a label: see `bert_tf.tasks.classification`."""

    # Columns of one text, or of a first and a second one.
    text_columns: tuple[str, ...] = ("text",)
    # Column of what is to be predicted.
    label_column: str = "label"

    def __post_init__(self) -> None:
        if len(self.text_columns) > 2:
            raise UserError(
                f"data.text_columns names {len(self.text_columns)} columns; name one or two"
            )


@dataclasses.dataclass(frozen=True)
class QuestionAnsweringData(FinetuningData):
    """Questions with contexts that hold their answers: see `bert_tf.tasks.question_answering`."""


@dataclasses.dataclass(frozen=True)
class TokenClassificationData(FinetuningData):
    """Words with tags: see `bert_tf.tasks.token_classification`."""


@dataclasses.dataclass(frozen=True)
class MultipleChoiceData(FinetuningData):
    """Contexts with several endings: see `bert_tf.tasks.multiple_choice`."""
