"""The section `data`: where the examples are and how to read them. Task families extend it."""

from typing import Self

from pydantic import model_validator

from bert_tf.config.section import Count, FilePath, FilePaths, Section, Share

# Formats with splits, and those that `bert-tf pretrain-data` writes, so that one file suits both.
_WITH_SPLITS = ("tfds", "datasets", "token_shards", "tfrecord")
# Keys that decide how examples are made of text; examples in TFRecords are already made.
_OF_EXAMPLES = (
    "masked_lm_prob max_predictions_per_seq mask_share random_share short_seq_prob cross_documents "
    "whole_word_masking"
).split()


class PretrainingData(Section):
    """Text to pre-train on, and what is to be predicted in it."""

    path: FilePath | FilePaths
    """A folder, a file, a glob, or a list of these. With format tfds, a name such as
    `wikipedia/20230601.en`."""
    format: str
    """Format of the text: `sentence_per_line`, `document_per_file`, `jsonl`, `wikitext`, `parquet`,
    `datasets` (a folder or a name on the Hugging Face Hub) or `tfds`; or what `bert-tf
    pretrain-data` wrote: `token_shards` or `tfrecord`."""
    split: str = "train"
    """Part of a data set of TFDS or of datasets in its own notation, such as `train[:10%]`. For
    token_shards and tfrecord: the value they were written with."""
    dev_fraction: Share = 0.05
    """Share of the documents held out for evaluation; 0 holds out none. For token_shards and
    tfrecord: always the value they were written with."""
    dev_path: FilePath | FilePaths | None = None
    """For format tfrecord: the files to evaluate on, which are not trained on. null takes those
    named `dev-*` in the folder or glob `path`, if there are any."""
    masked_lm_prob: Share = 0.15
    """Share of the tokens to predict (paper, section 3.1). If model.attention is left_to_right,
    right_to_left or side_by_side, every token is predicted and none is masked; this key and the
    other masking keys then have no effect."""
    max_predictions_per_seq: Count | None = None
    """Maximum number of predictions in a sequence; null is the number that masked_lm_prob gives at
    full length. google-research/bert has 20, which is that number for 128 tokens."""
    mask_share: Share = 0.8
    """Share of the tokens to predict that are replaced by [MASK] (paper, section 3.1)."""
    random_share: Share = 0.1
    """Share of the tokens to predict that are replaced by a random token. The rest stay as they
    are."""
    short_seq_prob: Share = 0.1
    """Share of the sequences that are shorter, so that the model also sees short texts."""
    next_sentence: bool = True
    """Predict whether the second segment follows the first (paper, section 3.1)."""
    cross_documents: bool = True
    """Without next_sentence: fill each sequence to the end with sentences of the next document,
    after a [SEP] (FULL-SENTENCES of RoBERTa, section 4.2). false begins a new sequence for every
    document (its DOC-SENTENCES)."""
    whole_word_masking: bool = False
    """Mask all pieces of a word or none. Off by default, as in the paper."""
    dupe_factor: Count = 10
    """How many times `bert-tf pretrain-data --tfrecords` makes examples of each document, each time
    with other pairs and masks. The default is that of google-research/bert."""

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if self.mask_share + self.random_share > 1:
            raise ValueError(
                f"data.mask_share {self.mask_share} and data.random_share {self.random_share} are "
                "more than 1 together; lower one"
            )
        for key, formats in (("split", _WITH_SPLITS), ("dev_path", ("tfrecord",))):
            if not self.is_default(key) and self.format not in formats:
                raise ValueError(
                    f"data.{key} is for data.format {formats[0]}, not {self.format}; "
                    f"remove data.{key}"
                )
        if self.format != "tfrecord":
            if self.next_sentence and not self.cross_documents:
                raise ValueError(
                    "data.cross_documents requires data.next_sentence: false; set it, or remove "
                    "data.cross_documents"
                )
            return self
        for key in _OF_EXAMPLES:
            if not self.is_default(key):
                raise ValueError(f"data.{key} was chosen when the records were written; remove it")
        return self


class FinetuningData(Section):
    """Labelled files of one task, in one folder."""

    path: FilePath
    """The folder of the files. With format tfds, a name such as `glue/mnli`; with format datasets,
    a folder that Hugging Face's `datasets` saved or can read, or a name on the Hub, such as
    `stanfordnlp/sst2` or, with a configuration and a revision, `nyu-mll/glue/mnli@main`."""
    format: str
    """Format of the files."""
    train: str | None = None
    """Name of the training file in the folder; null is the default name of the format, such as
    `train.tsv`. With format parquet, a glob such as `train-*.parquet` too; with format datasets, a
    split such as `train` or `train[:10%]`, or a file or a glob."""
    dev: str | None = None
    """Name of the file to evaluate on; null is the default name of the format."""
    test: str | None = None
    """Name of the file to predict for; null is the default name of the format, if that file exists.
    """
    train_rows: Count | None = None
    """Use only this many rows from the start of the training file; null uses all."""
