"""Labels of a text that the model was not trained on (Yin, Hay and Roth 2019, arXiv:1909.00161).

Each label is put into a sentence. The probability of the label is the probability that the text
entails this sentence, from a classifier that was trained on natural language inference (NLI).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn, cast

import keras
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, Text, plain
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Column, GroupColumn, TextColumn, as_list
from bert_tf.data.targets import class_names
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm, output
from bert_tf.export.service import Signature, Tensors
from bert_tf.io.json_files import as_json
from bert_tf.models.logits import PADDING_SCORE
from bert_tf.tasks import inputs
from bert_tf.tasks.classification.model import TextClassifier
from bert_tf.tasks.task_model import Asked, abstaining, of_columns
from bert_tf.tasks.texts.groups import alike_where_equal, in_groups, of_rows, one_by_one
from bert_tf.text import Tokenizer
from bert_tf.text.parts import first_equal

_GAP = "{}"


@keras.saving.register_keras_serializable("bert_tf")
class ZeroShotClassifier(TextClassifier):
    """Gives a text one of several labels, which are named only in the call of `predict`.

    `ZeroShotClassifier.from_checkpoint("typeform/distilbert-base-uncased-mnli")` answers as it is,
    and so does any BERT that was trained on natural language inference. Here the encoder is tiny
    and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] it came late food".split())
    >>> config = EncoderConfig(9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> nli = ["contradiction", "entailment", "neutral"]
    >>> model = ZeroShotClassifier(Encoder(config), tokenizer, nli)
    >>> answer = model.predict("It came late", labels=["delivery", "food"])
    >>> answer["label"] in ("delivery", "food")
    True
    >>> {label: round(each, 1) for label, each in answer["probabilities"].items()}  # untrained
    {'delivery': 0.5, 'food': 0.5}

    `predict` takes texts with `labels=` for all of them, or (texts, candidates), where each text
    has a list of its own. It returns dicts: `label`, its `probability`, and the `probabilities` of
    all labels, which add up to 1. With `multi_label`, or for one label alone, each has a
    probability of its own, that of entailment against contradiction. These are the numbers of
    transformers' pipeline "zero-shot-classification". `fit` and `evaluate` are refused.

    Called with the encoder's inputs, the model returns float32 logits [batch, classes] of natural
    language inference, as the `TextClassifier` that it was opened from.

    Args:
        encoder, tokenizer: what reads the texts.
        labels: names of the classes of natural language inference, in the order of the logits. One
            starts with "entail", one with "contra"; if there are two, the other contradicts.
        pair: true.
        max_length: the maximum number of tokens of a text with a hypothesis; longer ones are cut
            (128; a checkpoint that is opened reads as many as its encoder has positions).
        dropout: rate on the pooled output; None takes the encoder's.
        multi_label: whether any number of labels may be right.
        hypothesis_template: a sentence with one {}, where the label is inserted.
        temperature, abstain: as for a `TextClassifier`; by default those of the checkpoint.

    Raises:
        UserError: other labels, a model of single texts, or a template without {}.
    """

    columns: ClassVar[tuple[Column, ...]] = (
        TextColumn("text", example="It came late and cold."),
        GroupColumn("candidates", example=("delivery", "food", "service")),
    )
    trains = False
    setting_names = ("max_length", "multi_label", "hypothesis_template")
    device_options = ("multi_label", "hypothesis_template", "abstain")
    answer_options = ("labels", *device_options)

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        labels: Sequence[Any] | None = None,
        pair: bool | None = True,
        max_length: int | None = None,
        dropout: float | None = None,
        multi_label: bool = False,
        hypothesis_template: str = "This example is {}.",
        **kwargs: Any,
    ):
        if pair is False:
            raise UserError("a ZeroShotClassifier reads pairs; give a classifier of pairs")
        self._entailment = self._contradiction = 0
        if labels is None or not len(labels):
            _places([])
        super().__init__(encoder, tokenizer, labels, True, max_length, dropout, **kwargs)
        self.multi_label = multi_label
        self.hypothesis_template = hypothesis_template
        self.check_settings()

    def name_classes(self, labels: Sequence[Any]) -> None:
        self._entailment, self._contradiction = _places(class_names(as_list(labels, "labels")))
        super().name_classes(labels)

    def _cannot_train(self, *_: Any, **__: Any) -> NoReturn:
        raise UserError(
            "a ZeroShotClassifier is neither trained nor calibrated; fine-tune a TextClassifier "
            "on pairs of natural language inference, and open that as a ZeroShotClassifier"
        )

    fit = evaluate = calibrate = _cannot_train

    def hypothesis(self, label: str) -> str:
        return self.hypothesis_template.replace(_GAP, label)

    def score(self, logits: tf.Tensor, alone: Any) -> tf.Tensor:
        """The logit of a label, from logits [..., classes]: the logit of entailment. If a label
        stands alone, it is compared with the logit of contradiction.
        """
        entailment, contradiction = (
            logits[..., place] for place in (self._entailment, self._contradiction)
        )
        return self.calibrated(tf.where(alone, entailment - contradiction, entailment))

    def count_cut(self, columns: Sequence[Sequence[Any]]) -> tuple[int, str]:
        texts, lists = columns
        hypotheses = [[self.hypothesis(plain(label)) for label in labels] for labels in lists]
        return super().count_cut([texts, hypotheses])

    def scores(self, given: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """float32 [batch, candidates, classes], PADDING_SCORE for a candidate ""."""
        before, after = self.hypothesis_template.split(_GAP)

        def logits(texts: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            hypotheses = tf.strings.join([before, labels, after])
            return super(ZeroShotClassifier, self).scores({"text": texts, "candidates": hypotheses})

        return in_groups(given["text"], given["candidates"], logits)

    def signatures(self) -> dict[str, Signature]:
        """`label` string [batch], "" without candidates, and `probabilities` [batch, candidates].
        Equal candidates have the same probability, and the first is the label. "" has 0.
        """

        def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
            return self._answered(self.scores(given), given["candidates"])

        return super().signatures() | {"serving_default": of_columns(self, answer)}

    def scores_of_ids(self, given: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return of_rows(self.network(), given)

    def decoded(self, scores: tf.Tensor) -> Tensors:
        """`choice` int32 [batch], -1 for none, and `probabilities` float32 [batch, candidates]."""
        is_there = scores[..., 0] > PADDING_SCORE
        count = tf.reduce_sum(tf.cast(is_there, tf.int32), axis=1, keepdims=True)
        alone = tf.logical_or(self.multi_label, count == 1)
        of_labels = tf.where(is_there, self.score(scores, alone), -float("inf"))
        values = tf.where(alone, tf.sigmoid(of_labels), tf.nn.softmax(of_labels))
        probabilities = tf.where(is_there, alike_where_equal(values, of_labels), 0.0)
        # One more column, so that argmax is defined without candidates.
        padded = tf.pad(of_labels, [[0, 0], [0, 1]], constant_values=-1e30)
        best = tf.argmax(padded, axis=1, output_type=tf.int32)
        outputs = {
            "choice": tf.where(count[:, 0] > 0, best, -1),
            "probabilities": tf.gather(probabilities, first_equal(scores)),
        }
        return abstaining(outputs, self.abstain)

    def _answered(self, logits: tf.Tensor, candidates: tf.Tensor) -> Tensors:
        """The outputs of `serving_default`, from the results of `scores`."""
        found = self.decoded(logits)
        names = tf.pad(candidates, [[0, 0], [1, 0]])  # the first name, "", means no choice
        return {"label": tf.gather(names, found.pop("choice") + 1, batch_dims=1), **found}

    @classmethod
    def asked(cls, model: Answers, x: Any, labels: Any = None) -> Asked:
        # `labels` are names for all texts; None where `x` has candidates.
        has_candidates = isinstance(x, tuple) or isinstance(x, Mapping) and "candidates" in x
        if has_candidates == (labels is not None):
            raise UserError(
                "give labels for all texts, predict(texts, labels=[…]), or else lists of "
                "candidates, predict((texts, candidates))"
            )
        if labels is not None:
            names = class_names(as_list(labels, "labels"))
            rows, single = inputs.asked(x, (TextColumn("text"),))
            texts = [row["text"] for row in rows]
            x = (texts[0], names) if single else (texts, [names] * len(texts))
        return super().asked(model, x)

    def check_settings(self) -> None:
        template = self.hypothesis_template
        if not isinstance(template, str) or template.count(_GAP) != 1:
            raise UserError(
                f"hypothesis_template is {template!r}; give a sentence with one {{}}, where the "
                "label is inserted"
            )

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, Any]:
        labels = [plain(each) for each in cast(Sequence[Text], row["candidates"])]
        for number, label in enumerate(labels):
            if label in labels[:number]:
                raise UserError(f"the label {label!r} occurs twice; give each label once")
        probabilities = outputs["probabilities"][place][: len(labels)]
        return {
            "label": as_json(outputs["label"][place]) or None,
            "probability": as_json(probabilities.max()),
            "probabilities": dict(zip(labels, as_json(probabilities), strict=True)),
        }

    def device_form(self) -> DeviceForm:
        """The logits of a text with a hypothesis, and the probability that it is entailed."""

        def answer(features: Mapping[str, tf.Tensor]) -> Tensors:
            scores = self.network()(features)
            return {"scores": scores, "probability": tf.sigmoid(self.score(scores, True))}

        outputs = {"scores": output(len(self.labels)), "probability": output()}
        return DeviceForm(outputs, answer, lambda found, _: found["scores"])

    def strings_form(self) -> StringsForm:
        def hypothesis(label: Any) -> str:
            return self.hypothesis(plain(label))

        return one_by_one(self, "hypothesis", hypothesis, "scores", self._answered)


def _places(labels: Sequence[str]) -> tuple[int, int]:
    """The places of entailment and contradiction among the classes of a head."""
    lower = [label.lower() for label in labels]
    entailed = [i for i, label in enumerate(lower) if label.startswith("entail")]
    others = [i for i, label in enumerate(lower) if label.startswith("contra")]
    if len(labels) == 2 and entailed and not others:
        others = [1 - entailed[0]]
    if not entailed or not others:
        found = f"its labels are {', '.join(labels)}" if labels else "it has none"
        raise UserError(
            "a ZeroShotClassifier requires a classifier of natural language inference, with the "
            f"labels entailment and contradiction, but {found}; fine-tune a TextClassifier on such "
            "pairs, or give the names of its classes with labels="
        )
    return entailed[0], others[0]
