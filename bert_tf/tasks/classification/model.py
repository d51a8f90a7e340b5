"""One label for a text or a pair of texts (paper, section 4.1)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.checkpoints import embedder
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Columns
from bert_tf.data.targets import Label
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.litert.form import DeviceForm, of_scores
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.tasks import long_texts
from bert_tf.tasks.classification import few_shot
from bert_tf.tasks.embedding.pooling import normalized, pool
from bert_tf.tasks.task_model import Predicted, TaskModel
from bert_tf.tasks.texts.metrics import classification_metrics
from bert_tf.text import Tokenizer


@keras.saving.register_keras_serializable("bert_tf")
class TextClassifier(TaskModel):
    """Gives a text, or a pair of texts, one of several labels.

    `TextClassifier.from_checkpoint("google-bert/bert-base-uncased")` starts from pre-trained
    weights. Here the encoder is tiny and has random weights, and learns two words:

    >>> from bert_tf import EncoderConfig
    >>> keras.utils.set_random_seed(0)
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lovely awful".split())
    >>> config = EncoderConfig(7, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> clf = TextClassifier(Encoder(config), tokenizer)
    >>> texts, labels = ["lovely", "awful"] * 4, ["good", "bad"] * 4
    >>> history = clf.fit(texts, labels, batch_size=8, epochs=60, learning_rate=0.01, verbose=0)
    >>> answers = clf.predict(["lovely", "awful"])
    >>> [answer["label"] for answer in answers]
    ['good', 'bad']
    >>> list(answers[0]), list(answers[0]["probabilities"])
    (['label', 'probability', 'probabilities'], ['bad', 'good'])

    `fit` takes texts, or (texts_a, texts_b), with labels: names or whole numbers. `predict` returns
    names. Called with the encoder's inputs, the model returns float32 logits [batch, classes].

    `fit(texts, labels, few_shot=True)` learns from few texts, such as 8 of each label: the encoder
    from pairs of texts that have the same label or others, and then the head (SetFit). Its defaults
    are batches of 16 pairs, one epoch and a learning rate of 2e-5.

    Args:
        encoder, tokenizer: what reads the texts.
        labels: names of the classes in the order of the logits; None takes those of the first
            `fit`, in their order.
        pair: whether a row is two texts; None lets the first `fit` decide.
        max_length: the maximum number of tokens of a row, special ones included (128).
        dropout: rate on the pooled output; None takes the encoder's.
        pooling: what the head reads, as for a `TextEmbedder`; None is the pooler's output.
        normalize: whether the head reads vectors of length 1.
        multi_label: whether a text has any number of labels; the model is then a
            `MultiLabelClassifier`, which also takes `thresholds`.
        long_text: what is read of a longer text: "truncate", its start; "head_and_tail", its first
            and last tokens, 128 and 382 of 510, or this share, rounded, of another length; or
            "windows", all of it, in overlapping windows of `max_length`. For a pair, the second
            text is cut into windows, and each has the first text, which takes at most half of it.
        window_pooling: how the vectors of windows become the one that the head reads: "mean" (the
            default), "max", or "attention", a mean whose weights are learned (`window_attention`).
        stride: pieces from the start of a window to that of the next; None is half of `max_length`.
        max_windows: the maximum number of windows that are read of a text; None reads all.
        temperature: the divisor of logits before they become probabilities; `calibrate` finds it,
            and `fit` sets it back to 1.
        abstain: the minimum probability of a label; below it the label is None, and "" in `serve`
            and in exports. `predict(texts, abstain=0.8)` sets it for one call.

    Raises:
        UserError: labels that are not names of classes, a length that the encoder does not have, or
            settings of windows without windows.
    """

    has_labels = calibrates = True
    predicts: ClassVar[Predicted | None] = "classes"
    setting_names: ClassVar[tuple[str, ...]] = ("pair", "max_length")
    answer_options: ClassVar[tuple[str, ...]] = ("abstain",)

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        labels: Sequence[Any] | None = None,
        pair: bool | None = None,
        max_length: int | None = None,
        dropout: float | None = None,
        multi_label: bool = False,
        pooling: str | Sequence[str] | None = None,
        normalize: bool = False,
        long_text: str = "truncate",
        window_pooling: str | None = None,
        stride: int | None = None,
        max_windows: int | None = None,
        temperature: float = 1.0,
        abstain: float | None = None,
        **kwargs: Any,
    ):
        head = {"dropout": dropout, "num_classes": None}
        with_pooler = "pooled" in embedder.poolings(pooling or "pooled")
        super().__init__(encoder, tokenizer, head, max_length, with_pooler, **kwargs)
        self.pair, self.temperature, self.abstain = pair, temperature, abstain
        # The settings of vectors from the embedder that the model was opened from, for `few_shot`.
        self.of_embedder: Mapping[str, Any] = {}
        self.read_vectors(pooling, normalize)
        long_texts.set_up(self, long_text, window_pooling, stride, max_windows)
        self.make_head(None, "classifier", dropout)
        if labels is not None and len(labels):
            self.name_classes(labels)

    def read_vectors(self, pooling: str | Sequence[str] | None, normalize: bool = False) -> None:
        """Makes the head read other vectors; see the arguments of the class."""
        modes = embedder.poolings(pooling or "pooled")
        self.pooling = pooling if isinstance(pooling, str | None) else modes
        self.normalize, self.uses_pooler = normalize, "pooled" in modes
        width, self.pooled_width = self.pooled_width, self.encoder.config.output_size * len(modes)
        if self.classifier is not None and width != self.pooled_width:
            self.classifier = self.make_linear(self.head["num_classes"], "classifier")
            self.build()

    @property
    def settings(self) -> dict[str, Any]:
        pooling = self.pooling if isinstance(self.pooling, str | None) else [*self.pooling]
        own = {"pooling": pooling, "normalize": self.normalize}
        return super().settings | {name: value for name, value in own.items() if value}

    _fit_few_shot = few_shot.train

    def vectors_of(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        if self.pooling is None:
            return super().vectors_of(inputs, training)
        return pool(self.encoder, inputs, embedder.poolings(self.pooling), training)

    def outputs_of(self, vectors: tf.Tensor, training: bool = False) -> tf.Tensor:
        return super().outputs_of(normalized(vectors) if self.normalize else vectors, training)

    @property
    def target(self) -> Label:
        return Label(self.labels)

    def decode(self, scores: tf.Tensor) -> Tensors:
        """`label` string [batch], `probabilities` float32 and `classes` string [batch, classes]."""
        names = tf.constant(self.labels)
        return {
            "label": tf.gather(names, tf.argmax(scores, axis=-1)),
            "probabilities": tf.nn.softmax(self.calibrated(scores)),
            "classes": tf.tile(names[tf.newaxis, :], [tf.shape(scores)[0], 1]),
        }

    def device_form(self) -> DeviceForm:
        return of_scores(self, len(self.labels))

    def official_metrics(self, predictions: Any, rows: Columns) -> dict[str, float]:
        return classification_metrics(predictions, self.target.numbers(rows))

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, Any]:
        """`label`, or None; the greatest `probability`, and the `probabilities` of all labels."""
        probabilities = outputs["probabilities"][place]
        classes = as_json(outputs["classes"][place])
        return {
            "label": as_json(outputs["label"][place]) or None,
            "probability": as_json(probabilities.max()),
            "probabilities": dict(zip(classes, as_json(probabilities), strict=True)),
        }
