"""The section `data`: where the examples are and how to read them; a class for each task family.

"The reference" is google-research/bert: its create_pretraining_data.py, run_classifier.py and
run_squad.py.
"""

import dataclasses
from typing import Literal

from bert_tf.config.kinds import Count, FilePath, Positive, Share
from bert_tf.errors import UserError

# TFDS, and what `bert-tf pretrain-data` made of it, which the same file may go on to read.
_WITH_SPLITS = ("tfds", "token_shards", "tfrecord")
# What decides how examples are made of text; those in TFRecords are made already.
_OF_EXAMPLES = (
    "masked_lm_prob",
    "max_predictions_per_seq",
    "mask_share",
    "random_share",
    "short_seq_prob",
    "cross_documents",
    "whole_word_masking",
)


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """Text to pre-train on, and what is to be predicted of it."""

    # A folder, a file, a glob, or a list of these; with format tfds a name, such as
    # wikipedia/20230601.en.
    path: FilePath | tuple[FilePath, ...]
    # How the text is written: sentence_per_line, document_per_file, jsonl, wikitext or tfds (see
    # `bert_tf.data.corpus`); or token_shards or tfrecord, what `bert-tf pretrain-data` made of it.
    format: str
    # Part of a TFDS data set, in its own notation, such as train[:10%].
    split: str = "train"
    # Share of the documents held out to evaluate on; 0 holds out none. Of token_shards and tfrecord
    # both keys are those with which they were written, whatever is said here.
    dev_fraction: Share = 0.05
    # Format tfrecord: files to evaluate on, and not to train on. Null: those named dev-* in the
    # folder or glob `path`, if any.
    dev_path: FilePath | tuple[FilePath, ...] | None = None
    # Share of the tokens to predict (paper, section 3.1). Where model.attention goes one way every
    # token is predicted and none masked: this key and the others of masking, inherited from the
    # model to compare with, then do nothing.
    masked_lm_prob: Share = 0.15
    # Most predictions in a sequence; null is what masked_lm_prob asks for at full length. The
    # reference's 20 is that for 128 tokens, and has to be changed by hand for others.
    max_predictions_per_seq: Count | None = None
    # Of the tokens to predict, the share that is hidden by [MASK], and the share that a random
    # token takes the place of; the rest stay as they are (paper, section 3.1).
    mask_share: Share = 0.8
    random_share: Share = 0.1
    # Share of the sequences that are shorter, so that fine-tuning on short texts finds them known.
    short_seq_prob: Share = 0.1
    # Predict whether the second segment follows the first (paper, section 3.1).
    next_sentence: bool = True
    # Without next_sentence: fill sequences to the end with the next document's sentences, after a
    # [SEP] (FULL-SENTENCES of RoBERTa, section 4.2); false begins a new sequence for every document
    # (its DOC-SENTENCES).
    cross_documents: bool = True
    # Mask all pieces of a word or none. Off, as in the paper.
    whole_word_masking: bool = False
    # How many times `bert-tf pretrain-data --tfrecords` makes examples of each document, with other
    # pairs and masks (the reference's).
    dupe_factor: Count = 10

    def __post_init__(self) -> None:
        if self.mask_share + self.random_share > 1:
            raise UserError(
                f"data.mask_share {self.mask_share} and data.random_share {self.random_share} are "
                "more than 1 together; lower one"
            )
        if self.split != PretrainingData.split and self.format not in _WITH_SPLITS:
            raise UserError(
                f"data.split is for data.format tfds, but that is {self.format}; remove data.split"
            )
        if self.format != "tfrecord":
            if self.dev_path is not None:
                raise UserError(
                    f"data.dev_path is for data.format tfrecord, but that is {self.format}; remove "
                    "data.dev_path"
                )
            if self.next_sentence and not self.cross_documents:
                raise UserError(
                    "data.cross_documents is for data.next_sentence false; set that, or remove "
                    "data.cross_documents"
                )
            return
        for key in _OF_EXAMPLES:
            if getattr(self, key) != getattr(PretrainingData, key):
                raise UserError(f"data.{key} was chosen when the records were written; remove it")


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
    """One text or two with a label: see `bert_tf.tasks.classification` and `.regression`.

    Formats: tsv, csv and jsonl, with named columns; cola, sst2, mrpc, qqp, stsb, mnli, qnli, rte
    and wnli, a folder with the official files of that task of GLUE; tfds, whose features are the
    columns. Without names the files are train.tsv and dev.tsv, and test.tsv if it is there, with
    the format's ending; TFDS's splits are train and validation.
    """

    # Columns of one text, or of a first and a second one. Null: the column text, or what GLUE has.
    text_columns: tuple[str, ...] | None = None
    # Column of what is to be predicted; GLUE has its own.
    label_column: str = "label"
    # How much rows of a class count in the loss: balanced gives each class the same weight, however
    # many rows it has; or a weight for some labels, where others have 1. Only their proportions
    # matter: rows weigh 1 on average.
    class_weights: Literal["balanced"] | dict[str, Positive] | None = None

    def __post_init__(self) -> None:
        if self.text_columns is not None and len(self.text_columns) > 2:
            raise UserError(
                f"data.text_columns names {len(self.text_columns)} columns; name one or two"
            )


@dataclasses.dataclass(frozen=True)
class QuestionAnsweringData(FinetuningData):
    """Questions with contexts that hold their answers: see `bert_tf.tasks.question_answering`.

    Formats: squad, the official JSON, and tfds. Without names the files are train-v1.1.json and
    dev-v1.1.json, or those of v2.0 where questions may be `unanswerable`.
    """

    # Some contexts hold no answer, and the model may say so (SQuAD 2.0).
    unanswerable: bool = False
    # More training files in SQuAD's form, such as TriviaQA's (paper, section 4.2).
    extra_train: tuple[FilePath, ...] | None = None
    # A long context is cut into windows that start so many pieces apart (the reference's).
    stride: Count = 128
    # Pieces to keep of a question (the reference's).
    max_question_length: Count = 64
    # Best answers that are told with their probabilities, and most pieces of an answer (the
    # reference's).
    n_best: Count = 20
    max_answer_length: Count = 30
    # Answer nothing where the score of no answer is more than this above that of the best answer;
    # null: what gives the best F1 on the dev data.
    null_threshold: float | None = None

    def __post_init__(self) -> None:
        if self.null_threshold is not None and not self.unanswerable:
            raise UserError(
                "data.null_threshold is for data.unanswerable true; set that, or remove "
                "data.null_threshold"
            )


@dataclasses.dataclass(frozen=True)
class TokenClassificationData(FinetuningData):
    """Words with tags: see `bert_tf.tasks.token_classification`.

    Formats: conll, columns of words and tags (see `bert_tf.data.conll`), and tfds, whose splits are
    then the names of the files: by default train and dev, as conll2003 has them, and a test split
    only if it is named. A test file may be one column of words alone.
    """

    # Columns of the words and of the tags, counted from 0; -1 is the last, -2 the one before.
    word_column: int = 0
    tag_column: int = -1
    # Take a tag that continues no entity for the beginning of one, as conlleval does; false refuses
    # a file with tags that break its scheme.
    lenient_tags: bool = False
    # Read whole documents, as -DOCSTART- lines mark them: a word sees the sentences around its own,
    # as many as train.max_length has room for (the paper's "maximal document context").
    document_context: bool = False
    # What is too long is cut into windows that start so many pieces apart; null is half of
    # train.max_length.
    stride: Count | None = None


@dataclasses.dataclass(frozen=True)
class MultipleChoiceData(FinetuningData):
    """Contexts with several endings: see `bert_tf.tasks.multiple_choice`.

    Formats: swag, the official CSV; codah, its TSV; jsonl, objects with context, choices (or
    endings) and label. Without names the files are train.csv and val.csv of SWAG, train.tsv and
    dev.tsv of CODAH, train.jsonl and dev.jsonl, and test with the same ending if it is there.
    """
