"""The section `data`: where the examples are and how to read them.

Task families extend `FinetuningData`.

"The reference" is google-research/bert: its create_pretraining_data.py, run_classifier.py and
run_squad.py.
"""

import dataclasses

from bert_tf.config.kinds import Count, FilePath, Share
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
    # `bert_tf.data.corpora.corpus`); or token_shards or tfrecord, what `bert-tf pretrain-data` made
    # of it.
    format: str
    # Part of a TFDS data set, in its own notation, such as train[:10%].
    split: str = "train"
    # Share of the documents held out to evaluate on; 0 holds out none. Of token_shards and tfrecord
    # both keys are those with which they were written, whatever is said here.
    dev_fraction: Share = 0.05
    # Format tfrecord: files to evaluate on, and not to train on. Null: those named dev-* in the
    # folder or glob `path`, if any.
    dev_path: FilePath | tuple[FilePath, ...] | None = None
    # Share of the tokens to predict (paper, section 3.1). If model.attention goes one way, every
    # token is predicted and none is masked. This key and the other masking keys, inherited from
    # the model to compare with, then have no effect.
    masked_lm_prob: Share = 0.15
    # Most predictions in a sequence; null is the number that masked_lm_prob gives at full length.
    # The reference's 20 is that number for 128 tokens; other lengths need a change by hand.
    max_predictions_per_seq: Count | None = None
    # Share of the tokens to predict that [MASK] replaces, and share that a random token replaces.
    # The rest stay as they are (paper, section 3.1).
    mask_share: Share = 0.8
    random_share: Share = 0.1
    # Share of the sequences that are shorter, so that the model knows short texts in fine-tuning.
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
    # The format of the files; each task family says which formats it reads.
    format: str
    # Names of the files in the folder; null is the format's own, such as train.tsv.
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    # Use only so many rows from the start of the training file; null uses all.
    train_rows: Count | None = None
