"""The common parts of the tasks on one text or two, and the configuration of their runs."""

from typing import Annotated

from pydantic import Field

from bert_tf.config.data import FinetuningData
from bert_tf.config.model import PooledWindowsModel
from bert_tf.config.run import FinetuningRun
from bert_tf.config.section import Names


class TextData(FinetuningData):
    """One text or two with a label: see `bert_tf.tasks.classification` and `.regression`."""

    format: str
    """`tsv`, `csv`, `jsonl`, `parquet` or `datasets` (Hugging Face's), with named columns; `cola`,
    `sst2`, `mrpc`, `qqp`, `stsb`, `mnli`, `qnli`, `rte` or `wnli`: a folder with the official files
    of that GLUE task; or `tfds`, whose features are the columns. The default names are `train.tsv`,
    `dev.tsv` and `test.tsv`, with the ending of the format; in TFDS and in `datasets`, the splits
    `train` and `validation`.
    """
    text_columns: Annotated[Names, Field(max_length=2)] | None = None
    """Column of the text, or columns of a first and a second text. null is the column `text`, or
    the columns of the GLUE task.
    """
    label_column: str = "label"
    """Column of the target. The formats of GLUE have their own."""


class TextRun(FinetuningRun):
    """The common base of runs on one text or two."""

    model: PooledWindowsModel = PooledWindowsModel()
    """The sizes of the encoder, and how long texts are read."""
