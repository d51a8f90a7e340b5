"""The tasks of the table: their data, hyper-parameters, and how answers are scored.

bert_tf reads every row once, and transformers gets the same rows. For SQuAD, the hyper-parameters
are the paper's (section 4.2), except that the batch is half as large, as only a part is trained on.
CODAH is not in the paper, and has those of SWAG (section 4.4). For GLUE (section 4.1), batch and
epochs are the paper's, and the learning rate is the largest of the four that it chooses from.
WNUT-17 is not in the paper: batch and learning rate are among those that its appendix A.3
recommends. SST-2, too, is only trained on a part.
Where the two sides differ by default, ours is set to match. PyTorch's AdamW corrects Adam's moments
for starting at zero and has a smaller epsilon, and transformers' schedule decays from the end of
the warm-up on. The reference does none of this, so the same learning rate means other updates.
Also, transformers' examples draw the rows of a batch at random, but bert_tf groups them by length.
Both sides start with the head that the seed draws for transformers: question answering is not
trained to the end here, and its loss depends more on the draw of the head than on all else.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.multiple_choice.data import read_choices
from bert_tf.tasks.question_answering.metrics import answer_metrics
from bert_tf.tasks.question_answering.squad import given_texts, ids_of, read_squad
from bert_tf.tasks.texts.glue import read_glue
from bert_tf.tasks.token_classification.conll import read_conll
from bert_tf.tasks.token_classification.metrics import entity_metrics

# Ours starts with the same head, so that chance gives neither side an easier one.
HEAD = {"initial_head": "transformers'"}
# Settings of the section `train` that make bert_tf train as transformers' examples do.
AS_TRANSFORMERS = {
    "bias_correction": True,
    "adam_epsilon": 1e-8,
    "decay_after_warmup": True,
    "group_by_length": False,
}


@dataclasses.dataclass(frozen=True)
class QualityTask:
    """One line of the table.

    Attributes:
        config: file of the run, in experiments/.
        folder: folder of its data.
        metric: what is compared, as in metrics.json.
        settings: hyper-parameters for both, as in the configuration's section `train`.
        train_rows: use only so many rows of the training file; None uses all.
        percent: the factor that makes the metric a percentage; SQuAD's are percentages already.
    """

    config: str
    folder: Path
    metric: str
    settings: dict[str, float]
    train_rows: int | None = None
    percent: float = 100.0

    def overrides(
        self,
        checkpoint: str,
        seed: int,
        folder: Path,
        recipe: Mapping[str, Any] = AS_TRANSFORMERS,
    ) -> list[str]:
        """The settings of one run of bert_tf, on the data that `without_test` put in `folder`. The
        recipe overrides the task's own settings of the section `train`.
        """
        settings = {f"train.{key}": value for key, value in self.settings.items()}
        settings |= {"data.path": folder, "init.checkpoint": checkpoint, "train.seed": seed}
        settings |= {f"train.{key}": value for key, value in recipe.items()}
        # Both sides predict the held-out rows once, at the end, and nothing else.
        settings |= {"train.eval_steps": 1_000_000, "data.test": ""}
        if self.train_rows is not None:
            settings["data.train_rows"] = self.train_rows
        return [f"{key}={value}" for key, value in settings.items()]

    def files(self) -> list[Path]:
        """The files of the folder with training rows and held-out rows, without test files.

        Raises:
            UserError: there is no such folder.
        """
        if not self.folder.is_dir():
            raise UserError(f"there is no folder {self.folder} with data; see --help")
        files = (path for path in self.folder.iterdir() if path.is_file())
        return sorted(file for file in files if "test" not in file.name)

    def without_test(self, folder: Path) -> Path:
        """Puts links to `files` into `folder`; returns it."""
        folder.mkdir(parents=True, exist_ok=True)
        for file in self.files():
            link = folder / file.name
            # A link of an earlier call may point elsewhere.
            link.unlink(missing_ok=True)
            link.symlink_to(file)
        return folder

    def rows(self) -> dict[str, Any]:
        """What transformers trains on and predicts: family, labels, train and dev rows."""
        config = load_config(self.config, [f"data.path={self.folder}", "init.checkpoint=unused"])
        rows = _READERS[config.task](config.data)
        return rows | {"train": rows["train"][: self.train_rows]}

    def score(self, rows: dict[str, Any], predictions: Any) -> float:
        """The metric of transformers' predictions, by the code that scores bert_tf's."""
        return _SCORES[rows["family"]](self, rows, predictions)


def tasks(data: Path, glue: Path, squad: Path) -> dict[str, QualityTask]:
    """The table's lines by name.

    Args:
        data: a folder with wnut17 and codah.
        glue: one with SST-2 and CoLA.
        squad: one with train-v1.1.json and dev-v1.1.json.
    """
    glue_like = {"epochs": 3, "batch_size": 32, "learning_rate": 5e-5, "max_length": 128}
    wnut = glue_like | {"batch_size": 16}
    swag_like = glue_like | {"batch_size": 16, "learning_rate": 2e-5}
    squad_like = glue_like | {"batch_size": 16, "max_length": 384}
    return {
        "SST-2": QualityTask(
            "experiments/glue/sst2.yaml", glue / "SST-2", "accuracy", glue_like, train_rows=10_000
        ),
        "CoLA": QualityTask("experiments/glue/cola.yaml", glue / "CoLA", "mcc", glue_like),
        "WNUT-17": QualityTask("experiments/ner/wnut17.yaml", data / "wnut17", "f1", wnut),
        "CODAH": QualityTask("experiments/swag/codah.yaml", data / "codah", "accuracy", swag_like),
        "SQuAD by article": QualityTask(
            "experiments/squad/by_article.yaml",
            squad,
            "f1",
            squad_like,
            train_rows=2_000,
            percent=1.0,
        ),
    }


def _classification(data: Any) -> dict[str, Any]:
    splits = {
        split: read_glue(Path(data.path) / f"{split}.tsv", data.format)
        for split in ("train", "dev")
    }
    labels = splits["train"].all_classes()
    rows = {
        split: [
            {"texts": texts, "label": int(label)}
            for *texts, label in zip(*each.columns, each.class_ids(labels), strict=True)
        ]
        for split, each in splits.items()
    }
    return {"family": "classification", "labels": labels, **rows}


def _choices(data: Any) -> dict[str, Any]:
    rows = {
        split: [
            row._asdict() for row in read_choices(Path(data.path) / f"{split}.tsv", data.format)
        ]
        for split in ("train", "dev")
    }
    return {"family": "multiple_choice", "labels": None, **rows}


def _tags(data: Any) -> dict[str, Any]:
    splits = {
        split: read_conll(Path(data.path) / getattr(data, split)) for split in ("train", "dev")
    }
    labels = sorted({tag for sentence in splits["train"] for tag in sentence.tags} | {"O"})
    index = {label: number for number, label in enumerate(labels)}
    # Only tags of training rows are labels; types that only held-out rows have still count.
    rows = {
        split: [
            {"words": s.words, "tags": [index.get(tag, index["O"]) for tag in s.tags]} for s in each
        ]
        for split, each in splits.items()
    }
    gold = [sentence.tags for sentence in splits["dev"]]
    return {"family": "token_classification", "labels": labels, "gold": gold, **rows}


def _questions(data: Any) -> dict[str, Any]:
    rows: dict[str, list] = {"train": [], "dev": []}
    for split, each in rows.items():
        asked = read_squad(Path(data.path) / f"{split}-v1.1.json")
        columns = (ids_of(asked), *asked.values, asked.known_targets())
        for id, question, context, (answer, *_) in zip(*columns, strict=True):
            each.append(
                {
                    "id": id,
                    "question": question,
                    "context": context,
                    "answer": answer.text,
                    "start": answer.start,
                }
            )
    return {
        "family": "question_answering",
        "labels": None,
        "gold": str(Path(data.path) / "dev-v1.1.json"),
        **rows,
    }


_READERS = {
    "classification": _classification,
    "multiple_choice": _choices,
    "token_classification": _tags,
    "question_answering": _questions,
}


def _labels_score(task: QualityTask, rows: dict[str, Any], predictions: Sequence[int]) -> float:
    from sklearn import metrics

    gold = [row["label"] for row in rows["dev"]]
    scores = {
        "accuracy": metrics.accuracy_score,
        "f1": metrics.f1_score,
        "mcc": metrics.matthews_corrcoef,
    }
    return float(scores[task.metric](gold, np.array(predictions)))


def _tags_score(task: QualityTask, rows: dict[str, Any], predictions: list[list[int]]) -> float:
    labels = rows["labels"]
    predicted = [[labels[tag] for tag in sentence] for sentence in predictions]
    types = sorted({label.partition("-")[2] for label in labels} - {""})
    return entity_metrics(rows["gold"], predicted, types)[task.metric]


def _answers_score(task: QualityTask, rows: dict[str, Any], predictions: dict[str, str]) -> float:
    return answer_metrics(given_texts(read_squad(Path(rows["gold"]))), predictions)[task.metric]


_SCORES = {
    "classification": _labels_score,
    "multiple_choice": _labels_score,
    "token_classification": _tags_score,
    "question_answering": _answers_score,
}
