"""A label for a text, or for a pair of texts."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.config.run import CalibratedRun
from bert_tf.config.section import Positive
from bert_tf.config.train import FinetuningTrain
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.texts import TextData, TextRun

Weights = Annotated[dict[str, Positive], Field(min_length=1)]


class ClassificationData(TextData):
    """Texts as in `TextData`, and the weights of their classes."""

    class_weights: Literal["balanced"] | Weights | None = None
    """How much the rows of a class count in the loss. `balanced` gives each class the same total
    weight, however many rows it has. A mapping such as `{good: 2}` gives weights to some labels;
    the others have 1. Only the proportions matter: the mean weight of a row is 1.
    """


# The keys of `train` that apply to learning from few texts.
_OF_FEW = {
    *("few_shot", "epochs", "batch_size", "accumulation_steps", "rematerialize", "learning_rate"),
    *("warmup_fraction", "decay_after_warmup", "optimizer", "bias_correction", "adam_epsilon"),
    *("weight_decay", "gradient_clip", "seed", "precision", "max_length", "deterministic"),
    *("frozen_layers", "lora", "schedule", "skip_nonfinite"),
}


class LabelTrain(FinetuningTrain):
    """How a classifier of texts is trained."""

    few_shot: bool = False
    """Learn from few labelled texts, such as 8 of each label: the encoder from pairs of texts whose
    labels are equal or differ, then the head (SetFit, Tunstall et al. 2022). The defaults of setfit
    are epochs 1, batch_size 16 and learning_rate 2e-5. A run that was cut short starts again.
    """

    @model_validator(mode="after")
    def _keys_of_few(self) -> Self:
        for key in type(self).model_fields if self.few_shot else ():
            if key not in _OF_FEW and not self.is_default(key):
                raise ValueError(f"train.{key} has no effect with train.few_shot; remove it")
        if self.few_shot and self.epochs != round(self.epochs or 0):
            raise ValueError("train.epochs must be a whole number with train.few_shot")
        return self


class LabelRun(TextRun, CalibratedRun):
    """The common base of runs that label texts."""

    train: LabelTrain
    """How the weights are trained. A list of values for a key is a search over them, except for
    train.deterministic, train.strategy and train.tpu.
    """

    @model_validator(mode="after")
    def _few_labels_are_all(self) -> Self:
        others = {
            "distillation": self.distillation,
            "data.class_weights": getattr(self.data, "class_weights", None),
        }
        for key, value in others.items():
            if self.train.few_shot and value is not None:
                raise ValueError(f"{key} has no effect with train.few_shot; remove it")
        return self


class ClassificationRun(LabelRun):
    """A label for a text or a pair of texts."""

    task: Literal["classification"]
    data: ClassificationData
    """One text, or a pair of texts, with a label."""


HEAD = Head(
    layer="classifier",
    places={
        "huggingface": Place("classifier.", "BertForSequenceClassification"),
        "tf1": Place("", "run_classifier.py"),
        "model_garden": Place(
            "sentence_prediction/logits/", "BertClassifier", "classifier/out_proj"
        ),
        "keras_hub": Place("logits/", "BertTextClassifier"),
    },
    arguments=("num_classes", "dropout"),
    pools=True,
)
FAMILY = TaskFamily(
    name="classification",
    title="Classification",
    model="bert_tf.tasks.classification.model:TextClassifier",
    pictures="bert_tf.tasks.classification.pictures:ClassificationPictures",
    config=ClassificationRun,
    task="bert_tf.tasks.classification.run:Classification",
    metrics=("accuracy", "f1", "mcc"),
    head=HEAD,
    outputs=("label", "probabilities", "classes"),
    variants={"multi_label": "multi_label_classification"},
)
