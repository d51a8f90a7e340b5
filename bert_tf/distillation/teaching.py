"""What a student learns from its teacher in one training step."""

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from pydantic import ValidationError

from bert_tf.checkpoints.layers import spread
from bert_tf.config.distillation import DistillationLosses
from bert_tf.config.refusals import mistake
from bert_tf.distillation import losses
from bert_tf.encoder.encoder import Encoded, Encoder
from bert_tf.errors import UserError

# The outputs of a model, and what its encoder computed, if that is compared.
Answers = tuple[Any, list[Encoded]]
Sums = Mapping[str, tf.Tensor]
OwnLoss = Callable[[Any], tf.Tensor]
_Heads = Mapping[str, tf.Tensor]  # query, key and value of a block
# Replicas of a strategy train in threads of their own, and each has its own context.
# Whether to collect intermediates too, and the results of all calls of an encoder, in order.
_watched: contextvars.ContextVar[tuple[bool, list[Encoded]] | None] = contextvars.ContextVar(
    "watched", default=None
)


class Teaching:
    """The teacher of a model in training; `EncoderModel.teaching`.

    The teacher computes each batch from the ids that the student gets, without dropout and without
    a gradient, so its outputs need no memory beyond the step. A student without labels gets those
    of the teacher. Unless the rows are `labelled`, the task's own loss is left out. Set
    `has_metrics` to False if only some rows have targets, since the metrics would be wrong.
    """

    def __init__(
        self,
        student: Any,
        teacher: Any,
        settings: DistillationLosses | None = None,
        labelled: bool = True,
        has_metrics: bool = True,
    ):
        check_teacher(student, teacher)
        self.teacher = teacher
        self.settings = settings or DistillationLosses()
        self.hard = self.settings.hard if labelled else 0.0
        self.has_metrics = has_metrics and labelled
        # The projections of hidden states to the teacher's width, used in training only.
        self.weights: list[keras.Variable] = []
        self._relation_heads = self._relation_layer = 0
        self._check_losses(student)

    def _check_losses(self, student: Any) -> None:
        """Checks the losses of the encoders, and makes what they need."""
        settings, ours, theirs = self.settings, student.encoder, self.teacher.encoder
        used = [key for key in ("hidden", "attention", "relations") if getattr(settings, key)]
        # Whether more than the outputs is compared.
        self._watches = bool(used)
        if not used:
            return
        if student.long_text == "windows":
            raise UserError(f"the loss {used[0]} is not for models that read windows; remove it")
        for encoder in (ours, theirs):
            _make_watchable(encoder)
            if len(encoder.towers()) > 1 or encoder.config.bilstm:
                raise UserError(
                    f"the loss {used[0]} supports only encoders with a single stack of blocks and "
                    "no BiLSTM; remove it"
                )
        our_heads, their_heads = (each.config.num_attention_heads for each in (ours, theirs))
        if settings.attention and our_heads != their_heads:
            raise UserError(
                "the loss attention requires the same number of heads, but the student has "
                f"{our_heads} attention heads and the teacher {their_heads}; use relations instead"
            )
        if settings.relations:
            self._choose_relations(ours, theirs)
        our_width, their_width = ours.config.hidden_size, theirs.config.hidden_size
        if settings.hidden and our_width != their_width:
            initial, shape = keras.initializers.GlorotUniform(), (our_width, their_width)
            self.weights = [
                keras.Variable(initial, shape, name=f"{name}_projection")
                for name in ("embeddings", "hidden")
            ]

    def _choose_relations(self, ours: Encoder, theirs: Encoder) -> None:
        """Sets the relation heads and the teacher's layer."""
        heads = self.settings.relation_heads or theirs.config.num_attention_heads
        for name, encoder in (("student", ours), ("teacher", theirs)):
            if encoder.config.hidden_size % heads:
                raise UserError(
                    f"relation_heads {heads} does not divide the width of the {name}, "
                    f"{encoder.config.hidden_size}; choose a number that divides both widths"
                )
        layers, layer = theirs.config.num_hidden_layers, self.settings.relation_layer
        if layer is not None and layer >= layers:
            raise UserError(
                f"relation_layer is {layer}, but the layers of the teacher are 0 to {layers - 1}"
            )
        self._relation_heads = heads
        self._relation_layer = layers - 1 if layer is None else layer

    def check_rematerialize(self, rematerialize: bool) -> None:
        """Raises UserError if the losses need what rematerialization drops."""
        if rematerialize and (self.settings.attention or self.settings.relations):
            raise UserError(
                "the losses attention and relations require the activations that rematerialize "
                "discards; remove rematerialize, or save memory with accumulation_steps instead"
            )

    def check_compiled(self, student: Any) -> None:
        """Raises UserError if a student cannot be trained as its user compiled it."""
        self.check_rematerialize(student.rematerialize)
        if self.weights:
            raise UserError(
                "the hidden states of student and teacher have different widths, and a compiled "
                "student cannot train the projections between them; do not compile the student, "
                "or remove hidden"
            )

    def answers(self, x: Any) -> Answers:
        """The teacher's outputs for a batch, and those of its layers that are compared."""
        return self._watched(lambda: self.teacher(x, training=False))

    def train(
        self, student: Any, x: Any, y: Any, taught: Answers, hard: OwnLoss, sums: Sums
    ) -> tuple[Any, tf.Tensor]:
        """Calls the student on some rows; returns its outputs, and its share of the batch's loss.
        `taught` are the teacher's `answers`, and `sums` the batch's (`bert_tf.training.loop`).
        """
        outputs, loss = self.learn(student, x, y, taught, sums)
        return outputs, loss + self.hard * hard(outputs) if self.hard else loss

    def learn(
        self, student: Any, x: Any, y: Any, taught: Answers, sums: Sums
    ) -> tuple[Any, tf.Tensor]:
        """As `train`, without the task's own loss: the targets do not matter."""
        settings, shares = self.settings, []
        outputs, encoded = self._watched(lambda: student(x, training=True))
        if settings.soft:
            shares.append(settings.soft * self._soft(student, y, outputs, taught[0], sums))
        if self._watches:
            ours, theirs = _only(encoded), _only(taught[1])
            mask = tf.not_equal(tf.reshape(x["input_mask"], [-1, tf.shape(x["input_mask"])[-1]]), 0)
            losses_of_rows = tf.add_n(self._inner(ours, theirs, mask))
            # Several sequences may make one row of the batch.
            rows = student.replica_sums(y)["rows"]
            each = tf.math.divide_no_nan(rows, tf.cast(tf.size(losses_of_rows), tf.float32))
            shares.append(tf.reduce_sum(losses_of_rows) * each / sums["rows"])
        return outputs, tf.add_n(shares)

    def _soft(self, student: Any, y: Any, ours: Any, theirs: Any, sums: Sums) -> tf.Tensor:
        """The loss of the outputs."""
        learned, taught = student.matched(ours, y), self.teacher.matched(theirs, y)
        shares = []
        for (kind, values, weights, per), target in zip(learned, taught, strict=True):
            found = losses.soft_targets(kind, target.values, values, self.settings.temperature)
            if weights is not None:
                found *= weights
            shares.append(tf.math.divide_no_nan(tf.reduce_sum(found), sums[per]))
        return tf.add_n(shares)

    def _inner(self, ours: Encoded, theirs: Encoded, mask: tf.Tensor) -> list[tf.Tensor]:
        """The losses of layers, attention and relations, each float32 [rows]."""
        settings, found = self.settings, []
        pairs = list(enumerate(spread(len(theirs.layers), len(ours.layers))))
        if settings.hidden:
            states = [(ours.embeddings, theirs.embeddings)]
            states += [(ours.layers[low], theirs.layers[high]) for low, high in pairs]
            for number, (student, teacher) in enumerate(states):
                rows = ours.layout.restore(student)
                if self.weights:  # the first is for the embeddings
                    projection = self.weights[min(number, 1)]
                    rows = tf.einsum("rsh,ht->rst", tf.cast(rows, tf.float32), projection.value)
                of_teacher = theirs.layout.restore(teacher)
                found.append(settings.hidden * losses.hidden_states(of_teacher, rows, mask))
        if settings.attention:
            for low, high in pairs:
                teacher, student, of_rows = _alike(theirs, high, ours, low)
                loss = losses.attention_scores(teacher, student, of_rows)
                found.append(settings.attention * loss)
        if settings.relations:
            last = len(ours.layers) - 1
            teacher, student, of_rows = _alike(theirs, self._relation_layer, ours, last)
            loss = losses.relations(teacher, student, self._relation_heads, of_rows)
            found.append(settings.relations * loss)
        return found

    def _watched(self, call: Callable[[], Any]) -> Answers:
        encoded: list[Encoded] = []
        if not self._watches:
            return call(), encoded
        token = _watched.set((bool(self.settings.attention or self.settings.relations), encoded))
        try:
            return call(), encoded
        finally:
            _watched.reset(token)


def losses_of(given: DistillationLosses | Mapping[str, Any] | None) -> DistillationLosses:
    """The settings that `fit` was given, perhaps as a mapping; None means the defaults."""
    if given is None or isinstance(given, DistillationLosses):
        return given or DistillationLosses()
    if not isinstance(given, Mapping):
        raise UserError(
            f"distillation must be a dict such as {{'temperature': 4.0}}, not {given!r}"
        )
    try:
        return DistillationLosses.model_validate(dict(given))
    except ValidationError as error:
        _, said = mistake(error, DistillationLosses, dict(given), ("distillation",))
        raise UserError(said) from None


def check_teacher(student: Any, teacher: Any) -> None:
    """Raises UserError if `student` cannot learn from `teacher`; gives it labels if it has none."""
    ours, theirs = type(student).__name__, type(teacher).__name__
    if type(teacher) is not type(student):
        raise UserError(f"the teacher of a {ours} must also be a {ours}, not a {theirs}")
    if teacher is student:
        raise UserError("a model cannot be its own teacher; make a student with teacher.student()")
    if teacher.has_labels and not teacher.labels:
        raise UserError("the teacher has no labels yet; train it first")
    if student.has_labels and not student.labels:
        student.name_classes(teacher.labels)
    if student.labels != teacher.labels:
        raise UserError(
            f"the student has the labels {', '.join(student.labels)}, but the teacher has "
            f"{', '.join(teacher.labels)}; both must have the same labels in the same order"
        )
    words, known = student.tokenizer, teacher.tokenizer
    if words.vocabulary != known.vocabulary or words.settings.first_difference(known.settings):
        raise UserError(
            "the tokenizers of the student and the teacher differ in vocabulary or settings; "
            "create both models with the same tokenizer"
        )
    small, large = student.encoder.config, teacher.encoder.config
    for size, name in (
        ("num_hidden_layers", "layers"),
        ("hidden_size", "hidden units (hidden_size)"),
    ):
        if getattr(small, size) > getattr(large, size):
            raise UserError(
                f"the student has {getattr(small, size)} {name}, but its teacher has only "
                f"{getattr(large, size)}; a student must not be larger than its teacher"
            )
    large.check_length("the student's max_length", student.max_length)
    reading = [(model.long_text, model.max_length) for model in (student, teacher)]
    if "windows" in dict(reading) and reading[0] != reading[1]:
        raise UserError(
            "to learn windows, student and teacher must have the same long_text and max_length"
        )
    widths = getattr(student, "width", 0), getattr(teacher, "width", 0)
    if widths[0] != widths[1]:
        raise UserError(
            f"the vectors of the student have {widths[0]} dimensions, but those of the teacher "
            f"have {widths[1]}; add a dense layer of {widths[1]} units to the student"
        )


def _only(encoded: list[Encoded]) -> Encoded:
    """The result of the only call of a model's encoder."""
    if len(encoded) != 1:
        raise UserError(
            f"the model called its encoder {len(encoded)} times, but hidden, attention and "
            "relations require a single call; remove these losses"
        )
    return encoded[0]


def _alike(theirs: Encoded, high: int, ours: Encoded, low: int) -> tuple[_Heads, _Heads, tf.Tensor]:
    """Query, key and value of a layer of each model, cut to the longest row; and the rows' mask."""
    width = tf.minimum(*(tf.shape(each.layout.key_mask)[1] for each in (theirs, ours)))
    heads = []
    for found in (theirs.intermediates[high], ours.intermediates[low]):
        missing = [name for name in ("query", "key", "value") if name not in found]
        if missing:
            raise UserError(
                f"the blocks of the encoder return no {missing[0]}, which attention and relations "
                "require; remove these losses"
            )
        heads.append({name: found[name][:, :, :width] for name in ("query", "key", "value")})
    teacher, student = heads
    return teacher, student, theirs.layout.key_mask[:, :width]


def _make_watchable(encoder: Encoder) -> None:
    """Replaces `encode` and `encode_at` of this one encoder, so that `_watched` collects from it.
    It then computes every token of its last layer, even if the head reads only some tokens.
    """
    if "encode" in encoder.__dict__:
        return
    usual, usual_at = encoder.encode, encoder.encode_at

    def encode(
        inputs: Mapping[str, tf.Tensor], training: bool = False, with_intermediates: bool = False
    ) -> Encoded:
        watched = _watched.get()
        if watched is None:
            return usual(inputs, training, with_intermediates)
        encoded = usual(inputs, training, with_intermediates or watched[0])
        watched[1].append(encoded)
        return encoded

    def encode_at(
        inputs: Mapping[str, tf.Tensor], positions: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        if _watched.get() is None:
            return usual_at(inputs, positions, training)
        return encode(inputs, training).select(positions)

    encoder.__dict__.update(encode=encode, encode_at=encode_at)
