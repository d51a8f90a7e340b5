"""The section `data` of the tasks on one text or two."""

from typing import Annotated

from pydantic import Field

from bert_tf.config.data import FinetuningData
from bert_tf.config.kinds import Names


class TextData(FinetuningData):
    """One text or two with a label: see `bert_tf.tasks.classification` and `.regression`.

    Formats: tsv, csv and jsonl, with named columns; cola, sst2, mrpc, qqp, stsb, mnli, qnli, rte
    and wnli, a folder with the official files of that task of GLUE; tfds, whose features are the
    columns. Without names the files are train.tsv and dev.tsv, and test.tsv if it is there, with
    the format's ending; TFDS's splits are train and validation.
    """

    text_columns: Annotated[Names, Field(max_length=2)] | None = None
    """Columns of one text, or of a first and a second one. Null: text, or what GLUE has."""
    label_column: str = "label"
    """Column of what is to be predicted; GLUE has its own."""
