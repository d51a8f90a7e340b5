"""Students that start from layers of their teacher."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import layers, native
from bert_tf.checkpoints.names import weight_names
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.tasks import from_checkpoint
from tests.tasks import tiny_objects
from tests.tasks.tiny_objects import encoder, tokenizer

DEEP = {"num_hidden_layers": 4, "initializer_range": 0.5}


def classifier(**changes):
    model = bert_tf.TextClassifier(
        encoder(**DEEP | changes), tokenizer(), ["bad", "good"], pair=False
    )
    for number, weight in enumerate(model.weights):
        weight.assign_add(0.01 * (number + 1) * np.ones(weight.shape))
    return model


@pytest.fixture(scope="module")
def teacher():
    """A classifier of four layers that no test changes."""
    return classifier()


@pytest.fixture(scope="module")
def inputs(teacher):
    """The teacher's inputs for some texts."""
    return teacher.preprocessor()(tf.constant(tiny_objects.TEXTS[:4]))


@pytest.mark.parametrize(
    ("choice", "taken"),
    [("spread", [1, 3]), ("first", [0, 1]), ("last", [2, 3]), ([3, 0], [3, 0])],
)
def test_a_student_computes_what_its_teacher_would_with_these_layers_alone(
    teacher, inputs, choice, taken
):
    student = teacher.student(2, choice)
    cut = classifier()
    cut.encoder.blocks = [cut.encoder.blocks[number] for number in taken]
    np.testing.assert_array_equal(student(inputs), cut(inputs))
    assert np.abs(student(inputs) - teacher(inputs)).max() > 1e-3
    assert student.settings == teacher.settings
    assert student.labels == ("bad", "good")
    assert student.tokenizer is teacher.tokenizer


def test_a_list_of_layers_needs_no_number_and_no_number_takes_all(teacher):
    assert teacher.student(layers=[1]).encoder.config.num_hidden_layers == 1
    ours, theirs = weight_names(teacher.student()), weight_names(teacher)
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_a_student_has_weights_of_its_own_and_may_have_another_dtype(teacher):
    student = teacher.student(2, dtype="mixed_bfloat16")
    before = teacher.classifier.kernel.numpy()
    student.classifier.kernel.assign_add(np.ones(before.shape))
    np.testing.assert_array_equal(teacher.classifier.kernel, before)
    assert student.encoder.compute_dtype == "bfloat16"


def test_encoders_of_two_stacks_give_layers_of_both():
    teacher = classifier(attention="side_by_side")
    student = teacher.student(2)
    ours, theirs = weight_names(student), weight_names(teacher)
    for tower in ("", "right_to_left/"):
        for low, high in ((0, 1), (1, 3)):
            name = f"encoder/{tower}layer_{{}}/output/kernel"
            np.testing.assert_array_equal(ours[name.format(low)], theirs[name.format(high)])


def test_weights_that_only_the_last_layer_has_come_from_the_last_layer():
    weights = {"encoder/layer_0/b": 0, "encoder/layer_1/b": 1}
    weights |= {"encoder/layer_1/final": 9, "head": 5}
    names = ["encoder/layer_0/b", "encoder/layer_0/final", "head"]
    assert list(layers.of_layers(names, weights, [0]).values()) == [0, 9, 5]
    with pytest.raises(UserError, match=r"layer 0 of the teacher has no weight encoder/layer_0/c"):
        layers.of_layers(["encoder/layer_0/c"], weights, [0])


@pytest.mark.parametrize("format", ["bert_tf", "huggingface"])
def test_the_same_is_made_of_a_checkpoint(tmp_path, format):
    teacher = classifier(hidden_act="gelu")
    teacher.save_checkpoint(tmp_path / "teacher", format)
    found = layers.with_layers(from_checkpoint.find(tmp_path / "teacher"), [1, 3])
    assert found.encoder == dataclasses.replace(teacher.encoder.config, num_hidden_layers=2)
    student = bert_tf.TextClassifier(
        Encoder(found.encoder), tokenizer(), ["bad", "good"], pair=False
    )
    found.fill(student, student.labels)
    expected = weight_names(teacher.student(2))
    for name, weight in weight_names(student).items():
        np.testing.assert_allclose(weight, expected[name], atol=1e-6, err_msg=name)
    assert found.table is native.TABLE


def test_thresholds_that_were_found_on_dev_data_are_not_the_students():
    teacher = tiny_objects.multi_labeller(labels=["a", "b"], pair=False)
    teacher.remember({"threshold_a": 0.3, "threshold_b": 0.4})
    assert teacher.student(1).thresholds is None
    given = tiny_objects.multi_labeller(labels=["a", "b"], pair=False, thresholds=[0.1, 0.2])
    assert given.student(1).thresholds == (0.1, 0.2)
    answerer = tiny_objects.answerer(unanswerable=True)
    answerer.remember({"null_threshold": -2.0})
    assert answerer.student(1).null_threshold is None
    assert answerer.student(1).unanswerable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), "a student with 5 layers cannot be made from a teacher with 4; choose 1 to 4"),
        ((0,), "num_hidden_layers must be at least 1, got 0"),
        ((2, "odd"), "unknown layers 'odd'; choose spread, first, last, or a list of numbers"),
        ((2, [0, 4]), "the teacher has no layer 4; its layers are 0 to 3"),
        ((None, [-1]), "the teacher has no layer -1"),
        ((2, [0]), "a student with 2 layers requires 2 chosen layers of the teacher, not 1"),
    ],
)
def test_layers_that_are_not_there_are_refused(teacher, arguments, message):
    with pytest.raises(UserError, match=message):
        teacher.student(*arguments)


def test_a_teacher_without_labels_has_no_student():
    with pytest.raises(UserError, match="no labels yet"):
        bert_tf.TextClassifier(encoder(), tokenizer()).student(1)
