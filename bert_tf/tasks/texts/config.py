"""The section `data` of the tasks on one text or two."""

import dataclasses

from bert_tf.config.data import FinetuningData
from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class TextData(FinetuningData):
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

    def __post_init__(self) -> None:
        if self.text_columns is not None and len(self.text_columns) > 2:
            raise UserError(
                f"data.text_columns names {len(self.text_columns)} columns; name one or two"
            )
