"""Every family learns from a teacher, with labels and without."""

import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.names import weight_names
from bert_tf.distillation import losses
from bert_tf.distillation.teaching import Teaching, losses_of
from bert_tf.encoder.ablations import encoder_for
from bert_tf.errors import UserError
from bert_tf.text import Tokenizer
from tests import tiny
from tests.tasks import tiny_objects as tiny_models
from tests.tasks.tiny_objects import LABELS, TEXTS, encoder, tokenizer

ROOT = Path(__file__).parents[2]
DEEP = {"num_hidden_layers": 2, "initializer_range": 0.5}
PAIRS = (TEXTS[:8], TEXTS[1:9])
# The class, its own arguments, what `fit` takes without targets, and targets.
FAMILIES = {
    "classes": (bert_tf.TextClassifier, {"labels": ["bad", "good"]}, TEXTS, LABELS),
    "pairs": (bert_tf.TextClassifier, {"labels": ["0", "1"], "pair": True}, PAIRS, [0, 1] * 4),
    "labels": (
        bert_tf.TextClassifier,
        {"labels": ["cat", "dog", "swims"], "multi_label": True},
        TEXTS,
        tiny_models.LABEL_LISTS,
    ),
    "numbers": (bert_tf.TextRegressor, {}, TEXTS[:8], [0.5, 2.0] * 4),
    "spans": (
        bert_tf.QuestionAnswerer,
        {"unanswerable": False, "max_length": 24, "stride": 8, "max_question_length": 4},
        (tiny_models.QUESTIONS, tiny_models.CONTEXTS),
        tiny_models.ANSWERS,
    ),
    "tags": (
        bert_tf.TokenClassifier,
        {"labels": ["O", "B-animal", "I-animal"], "max_length": 16},
        tiny_models.WORDS,
        tiny_models.TAGS,
    ),
    "choices": (bert_tf.MultipleChoice, {}, (TEXTS[:8], tiny_models.CHOICES), [0, 1] * 4),
    "ranks": (
        bert_tf.Reranker,
        {},
        (TEXTS[:4], [["the cat", "a dog"], ["fish"], ["bird", "cat", "mat"], ["log"]]),
        [[1.0, 0.0], [1.0], [0.0, 1.0, 0.0], [0.0]],
    ),
    "pieces": (bert_tf.MaskedLM, {}, TEXTS, None),
    "order": (bert_tf.NextSentence, {}, PAIRS, [True, False] * 4),
    "vectors": (bert_tf.TextEmbedder, {}, TEXTS[:8], None),
    "vectors of pairs": (bert_tf.TextEmbedder, {"normalize": True}, PAIRS, None),
}
# The others take long; each differs from one of these in few lines.
FAST = ("classes", "tags", "vectors")
ALL = {"soft": 1.0, "hidden": 0.1, "attention": 0.1, "relations": 1.0}


def model(kind, seed=0, **changes):
    cls, settings, _, _ = FAMILIES[kind]
    return cls(encoder(seed, **DEEP | changes), tokenizer(), **settings)


def narrow_encoder(**changes):
    keras.utils.set_random_seed(1)
    return encoder_for(tiny.encoder_config(8, **DEEP | changes))


def data(kind):
    *_, x, y = FAMILIES[kind]
    return x, y


def learn(student, x, teacher, y=None, **options):
    """The losses of the epochs of a student that learns from its teacher."""
    data = (x,) if y is None else (x, y)
    return student.fit(*data, teacher=teacher, verbose=0, seed=0, **options).history["loss"]


def values(network):
    return {name: weight.numpy() for name, weight in weight_names(network).items()}


def distance(student, teacher, kind):
    """How far the outputs are from the teacher's, on the training rows."""
    x, y = data(kind)
    rows = student.given(x, y, may_lack_targets=True)
    is_labelled = student.target is None or student.target.is_in(rows)
    batch = student.examples(rows if is_labelled else rows.without_targets())
    found = batch.take(np.arange(len(batch.lengths)))
    if kind == "pieces":
        found = student._hidden(
            {k: tf.constant(v) for k, v in found[0].items()}, tf.constant([1, 2])
        )
    inputs, targets, *_ = found
    total = 0.0
    pairs = zip(*(each.matched(each(inputs), targets) for each in (student, teacher)), strict=True)
    for ours, theirs in pairs:
        loss = losses.soft_targets(ours.kind, theirs.values, ours.values, 1.0)
        total += float(tf.reduce_sum(loss if ours.weights is None else loss * ours.weights))
    return total


KINDS = [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in FAMILIES]


@pytest.mark.end_to_end
@pytest.mark.parametrize("kind", KINDS)
def test_a_student_comes_close_to_its_teacher_without_labels(kind):
    teacher = model(kind)
    student = teacher.student(1)
    before, start = values(teacher), distance(student, teacher, kind)
    x, y = data(kind)
    options = {"soft": 1.0, "hard": 0.0} if kind in ("pieces", "vectors of pairs") else {}
    measured = {"validation_data": (x, y), "validation_freq": 12} if kind == "classes" else {}
    history = student.fit(
        x,
        teacher=teacher,
        distillation=options,
        epochs=12,
        batch_size=4,
        learning_rate=2e-3,
        verbose=0,
        seed=0,
        **measured,
    )
    assert distance(student, teacher, kind) < 0.6 * start
    if measured:
        assert {"loss", "val_accuracy", "val_f1"} <= set(history.history)
    else:
        assert set(history.history) == {"loss"} or kind in ("pieces", "vectors of pairs")
    assert history.history["loss"][-1] < history.history["loss"][0]
    after = values(teacher)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_loss_of_a_step_is_the_weighted_sum_of_its_parts():
    teacher, student = model("classes"), model("classes", seed=1)
    settings = {"temperature": 3.0, "hard": 0.25, "soft": 0.75}
    x, y = TEXTS[:8], LABELS[:8]
    inputs = teacher.preprocessor()(tf.constant(x))
    classes = np.array([["bad", "good"].index(label) for label in y])
    theirs, ours = teacher(inputs).numpy(), student(inputs).numpy()
    hard = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(classes, ours)
    p, q = (tf.nn.softmax(each / 3.0).numpy() for each in (theirs, ours))
    soft = 9.0 * np.mean(np.sum(p * np.log(p / q), axis=1))
    student.compile(optimizer=keras.optimizers.SGD(0.0), run_eagerly=True)
    history = student.fit(x, y, teacher=teacher, distillation=settings, batch_size=8, verbose=0)
    assert history.history["loss"][0] == pytest.approx(0.25 * float(hard) + 0.75 * soft, rel=1e-4)


def inner_loss(teacher, student, name, inputs):
    """One of the losses of the encoder, from what `encode` returns."""
    theirs, ours = (
        each.encoder.encode(inputs, with_intermediates=True) for each in (teacher, student)
    )
    mask = inputs["input_mask"].numpy() == 1
    if name == "hidden":
        pairs = [(theirs.embeddings, ours.embeddings), (theirs.layers[1], ours.layers[0])]
        states = [
            [e.layout.restore(each).numpy() for e, each in zip((theirs, ours), pair, strict=True)]
            for pair in pairs
        ]
        return sum(
            np.mean([np.mean((t - s)[row, mask[row]] ** 2) for row in range(len(mask))])
            for t, s in states
        )
    high, low, real = theirs.intermediates[1], ours.intermediates[0], tf.constant(mask)
    if name == "attention":
        return np.mean(losses.attention_scores(high, low, real))
    return np.mean(losses.relations(high, low, 4, real))


@pytest.mark.parametrize("name", ["hidden", "attention", "relations"])
@pytest.mark.parametrize("accumulation_steps", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_losses_of_the_encoder_compare_the_layers_that_belong_together(name, accumulation_steps):
    teacher, student = model("classes"), model("classes", seed=1, num_hidden_layers=1)
    settings = {"soft": 0.0, "hard": 0.0, name: 0.5}
    settings |= {"relation_heads": 4} if name == "relations" else {}
    x = TEXTS[:8]
    inputs = {k: tf.constant(v) for k, v in teacher.preprocessor()(tf.constant(x)).items()}
    expected = 0.5 * inner_loss(teacher, student, name, inputs)
    student.compile(
        keras.optimizers.SGD(0.0), accumulation_steps=accumulation_steps, run_eagerly=True
    )
    history = student.fit(x, teacher=teacher, distillation=settings, batch_size=8, verbose=0)
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_narrower_student_learns_hidden_states_through_projections():
    teacher = model("classes")
    student = bert_tf.TextClassifier(narrow_encoder(), tokenizer())
    projections = []
    training_begins = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: projections.extend(student.teaching.weights)
    )
    options = {"epochs": 8, "batch_size": 8, "learning_rate": 5e-3, "callbacks": [training_begins]}
    first, *_, last = learn(
        student, TEXTS, teacher, distillation={"hidden": 1.0, "soft": 0.0}, **options
    )
    assert [tuple(each.shape) for each in projections] == [(8, 16), (8, 16)]
    assert last < 0.9 * first
    assert not any("projection" in name for name in values(student))
    assert student.labels == ("bad", "good")  # the teacher's
    student.fit(TEXTS, LABELS, verbose=0)  # without a teacher, and without projections


def test_the_gradient_reaches_the_student_alone():
    teacher = model("classes")
    student = teacher.student(1)
    student.teaching = Teaching(student, teacher, losses_of(ALL))
    inputs = {k: tf.constant(v) for k, v in teacher.preprocessor()(tf.constant(TEXTS[:4])).items()}
    targets = tf.constant([0, 1, 0, 1])
    with tf.GradientTape() as tape:
        taught = student.teaching.answers(inputs)
    assert not any(each is not None for each in tape.gradient(taught[0], student.trainable_weights))
    student.compile(optimizer=keras.optimizers.SGD(0.1))
    before = values(teacher)
    student.train_step((inputs, targets))
    assert all(np.array_equal(before[name], each) for name, each in values(teacher).items())
    student.teaching = None


@pytest.mark.slow
def test_the_teacher_computes_without_dropout():
    dropout = {"hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.5}
    teacher = model("classes", **dropout)
    student = model("classes", seed=1)
    options = {"teacher": teacher, "distillation": {"hard": 0.0}, "batch_size": 24, "verbose": 0}
    student.compile(optimizer=keras.optimizers.SGD(0.0))
    first, second = (student.fit(TEXTS, LABELS, **options).history["loss"][0] for _ in range(2))
    assert first == pytest.approx(second, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "hard"), [("tags", 1.0), ("vectors of pairs", 0.0), ("vectors of pairs", 0.5)]
)
def test_parts_of_a_batch_give_the_same_gradient(kind, hard):
    x, y = data(kind)
    results = []
    for parts in (1, 3):
        teacher = model(kind)
        student = teacher.student(1)
        student.compile(optimizer=keras.optimizers.SGD(0.1), accumulation_steps=parts)
        losses_of_epochs = learn(
            student, x, teacher, y, distillation=ALL | {"hard": hard}, batch_size=8
        )
        assert student.teaching is None
        results.append((values(student), losses_of_epochs))
    (ours, our_losses), (theirs, their_losses) = results
    assert our_losses == pytest.approx(their_losses, rel=1e-4)
    for name, each in ours.items():
        np.testing.assert_allclose(each, theirs[name], atol=2e-5, err_msg=name)


@pytest.mark.slow
def test_student_and_teacher_may_have_different_layouts():
    losses_of_both = []
    for layout in ("unpadded", "padded"):
        teacher = model("classes")
        teacher.encoder.layout = layout
        student = teacher.student(1)
        student.encoder.layout = "unpadded"
        student.compile(optimizer=keras.optimizers.SGD(0.0))
        losses_of_both += learn(
            student, TEXTS[:8], teacher, LABELS[:8], distillation=ALL, batch_size=8
        )
    assert losses_of_both[0] == pytest.approx(losses_of_both[1], rel=1e-5)


@pytest.mark.slow
def test_two_devices_learn_as_one():
    command = [sys.executable, "-m", "tests.distillation.two_devices"]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    differences = json.loads(found.stdout.splitlines()[-1])
    assert set(differences) == {"tags", "ranks", "vectors of pairs"}
    assert max(differences.values()) < 1e-5


@pytest.mark.slow
@pytest.mark.bfloat16
def test_a_student_in_bfloat16_learns_from_a_teacher_in_float32():
    teacher = model("classes")
    student = teacher.student(1, dtype="mixed_bfloat16")
    options = {"distillation": ALL, "epochs": 6, "batch_size": 8, "learning_rate": 1e-3}
    first, *_, last = learn(student, TEXTS, teacher, **options)
    assert last < first


def test_a_compiled_student_adds_its_own_loss_and_is_as_before_afterwards():
    teacher = model("classes")
    student = teacher.student(1)
    student.compile(
        optimizer=keras.optimizers.SGD(0.0),
        loss=lambda y, logits: 0.0 * logits[:, 0] + 8.0,
        run_eagerly=True,
    )
    x, y, options = TEXTS[:8], LABELS[:8], {"verbose": 0}
    own = student.fit(x, y, **options).history["loss"][0]
    both = student.fit(
        x, y, teacher=teacher, distillation={"hard": 0.5, "soft": 1e-9}, **options
    ).history["loss"][0]
    again = student.fit(x, y, **options).history["loss"][0]
    assert (own, again) == pytest.approx((8.0, 8.0))
    assert both == pytest.approx(4.0, rel=1e-4)


@pytest.mark.slow
def test_ids_and_datasets_of_strings_learn_from_a_teacher_too():
    teacher = model("classes")
    student = teacher.student(1)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(8)
    start = distance(student, teacher, "classes")
    soft = {"hard": 0.0}
    options = {"teacher": teacher, "distillation": soft, "epochs": 8, "verbose": 0}
    student.fit(dataset, learning_rate=2e-3, **options)
    middle = distance(student, teacher, "classes")
    inputs = teacher.preprocessor()(tf.constant(TEXTS))
    inputs = {name: each.numpy() for name, each in inputs.items()}
    targets = np.array([["bad", "good"].index(label) for label in LABELS])
    student.compile(optimizer=keras.optimizers.Adam(2e-3))
    student.fit(inputs, targets, **options)
    assert distance(student, teacher, "classes") < middle < start


def narrow(**changes):
    return bert_tf.TextClassifier(narrow_encoder(**changes), tokenizer(), ["bad", "good"])


def test_teachers_that_do_not_fit_are_refused():
    teacher, student = model("classes"), model("classes").student(1)
    other = Tokenizer([*tiny.VOCABULARY[:-1], "other"], lower_case=True)

    def refused(message, student, teacher, *data, **options):
        data = data or (TEXTS,)
        with pytest.raises(UserError, match=message):
            student.fit(*data, teacher=teacher, verbose=0, **options)

    said = "the teacher of a TextClassifier must also be a TextClassifier"
    refused(said, student, model("numbers"))
    refused(f"{said}, not a str", student, "runs/teacher")
    refused("cannot be its own teacher", student, student)
    refused("no labels yet; train it", student, bert_tf.TextClassifier(encoder(), tokenizer()))
    named = bert_tf.TextClassifier(encoder(**DEEP), tokenizer(), ["good", "bad"])
    said = "labels good, bad, but the teacher has bad, good; both must have the same"
    refused(said, named, teacher)
    unknown = bert_tf.TextClassifier(encoder(), other, ["bad", "good"])
    refused("differ in vocabulary or settings", unknown, teacher)
    refused("the student has 2 layers, but its teacher has only 1", teacher, student)
    refused(r"16 hidden units \(hidden_size\), but its teacher has only 8", student, narrow())
    short = model("classes", max_position_embeddings=16)
    refused("the student's max_length 32 is longer than the model's 16 positions", student, short)
    said = "requires the same number of heads, but the student has 4 attention heads and"
    refused(said, narrow(num_attention_heads=4), teacher, distillation={"attention": 1.0})
    for setting, said in (
        ({"relation_heads": 3}, "relation_heads 3 does not divide the width of the student, 16"),
        ({"relation_layer": 2}, "relation_layer is 2, but the layers of the teacher are 0 to 1"),
    ):
        refused(said, student, teacher, distillation={"relations": 1.0} | setting)
    two = model("classes", attention="side_by_side")
    refused("a single stack of blocks", two.student(1), two, distillation={"hidden": 1.0})
    compiled = narrow()
    compiled.compile(optimizer="sgd")
    refused("cannot train the projections", compiled, teacher, distillation={"hidden": 1.0})
    sparing = teacher.student(1)
    sparing.compile(optimizer="sgd", rematerialize=True)
    said = "require the activations that rematerialize discards"
    refused(said, sparing, teacher, distillation={"relations": 1.0})
    ids = teacher.preprocessor()(tf.constant(TEXTS))
    refused("fit on ids requires targets, even with a teacher", student, teacher, ids)
    refused("sample_weight applies to", student, teacher, sample_weight=[1.0] * len(TEXTS))
    said = "validation_split would select rows without labels"
    refused(said, student, teacher, validation_split=0.5)
    vectors = model("vectors")
    small = bert_tf.TextEmbedder(narrow_encoder(), tokenizer())
    refused("vectors of the student have 8 dimensions, but those of the teach.* 16", small, vectors)
    with pytest.raises(UserError, match="distillation requires a teacher; give teacher="):
        student.fit(TEXTS, LABELS, distillation={"soft": 1.0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": 0}, "distillation.temperature must be greater than 0, got 0"),
        ({"soft": -1.0}, "distillation.soft must be at least 0, got -1.0"),
        ({"softs": 1.0}, "key 'distillation.softs'; the nearest valid key is distillation.soft"),
        ({"soft": 0.0}, "nothing is learned from the teacher"),
        ({"relation_heads": 4}, "relation_heads is for relations, whose weight is 0"),
        (4.0, "distillation must be a dict such as"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        losses_of(given)


def test_a_family_that_does_not_say_what_it_predicts_cannot_be_distilled():
    class Plain(bert_tf.TextClassifier):
        predicts = None

    make = lambda: Plain(encoder(), tokenizer(), ["bad", "good"])  # noqa: E731
    with pytest.raises(UserError, match="a Plain cannot be distilled"):
        make().fit(TEXTS, teacher=make(), verbose=0)
