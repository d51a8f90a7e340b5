"""The losses, against their formulas computed by loops in float64."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.distillation import losses

RANDOM = np.random.default_rng(0)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], bool)


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def divergence(teacher, student):
    """KL(teacher || student) of two distributions."""
    return sum(p * np.log(p / q) for p, q in zip(teacher, student, strict=True))


def draw(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def heads_of(heads, size):
    return {name: draw(3, heads, 4, size) for name in ("query", "key", "value")}


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_classes_are_compared_as_distributions_at_a_temperature(temperature):
    teacher, student = 3 * draw(2, 3, 5), draw(2, 3, 5)
    found = losses.soft_targets("classes", teacher, student, temperature).numpy()
    assert found.shape == (2, 3)
    for place in np.ndindex(2, 3):
        p, q = (softmax(np.float64(each[place]) / temperature) for each in (teacher, student))
        np.testing.assert_allclose(found[place], temperature**2 * divergence(p, q), rtol=1e-4)


def test_labels_are_compared_one_by_one():
    teacher, student, temperature = 3 * draw(2, 4), draw(2, 4), 2.0
    found = losses.soft_targets("labels", teacher, student, temperature).numpy()
    for row in range(2):
        expected = []
        for t, s in zip(np.float64(teacher[row]), np.float64(student[row]), strict=True):
            p, q = (1 / (1 + np.exp(-each / temperature)) for each in (t, s))
            expected.append(temperature**2 * divergence([p, 1 - p], [q, 1 - q]))
        np.testing.assert_allclose(found[row], np.mean(expected), rtol=1e-4)


def test_values_are_compared_by_their_squared_error():
    teacher, student = draw(2, 3), draw(2, 3)
    found = losses.soft_targets("values", teacher, student, 7.0).numpy()
    np.testing.assert_allclose(found, ((teacher - student) ** 2).mean(axis=1), rtol=1e-5)


def test_a_student_that_agrees_has_no_loss_also_where_choices_are_padding():
    logits = tf.constant([[1.0, -1e9], [-1e9, -1e9]])
    other = tf.constant([[5.0, -1e9], [-1e9, -1e9]])
    assert losses.soft_targets("classes", logits, other, 2.0).numpy().tolist() == [0.0, 0.0]


def test_the_gradient_of_soft_targets_is_the_difference_of_probabilities():
    teacher, student, temperature = tf.constant(draw(1, 4)), tf.Variable(draw(1, 4)), 3.0
    with tf.GradientTape() as tape:
        loss = losses.soft_targets("classes", teacher, student, temperature)
    p, q = (tf.nn.softmax(each / temperature) for each in (teacher, student))
    np.testing.assert_allclose(tape.gradient(loss, student), temperature * (q - p), atol=1e-5)


def test_hidden_states_count_tokens_only():
    teacher, student = draw(3, 4, 6), draw(3, 4, 6)
    found = losses.hidden_states(teacher, student, tf.constant(MASK)).numpy()
    for row in range(2):
        tokens = np.flatnonzero(MASK[row])
        expected = np.mean((np.float64(teacher) - student)[row, tokens] ** 2)
        np.testing.assert_allclose(found[row], expected, rtol=1e-5)
    assert found[2] == 0


def test_attention_is_compared_before_its_softmax():
    teacher, student = heads_of(2, 8), heads_of(2, 3)
    found = losses.attention_scores(teacher, student, tf.constant(MASK)).numpy()
    for row in range(2):
        tokens, errors = np.flatnonzero(MASK[row]), []
        for head in range(2):
            for q in tokens:
                for k in tokens:
                    a, b = (
                        np.float64(each["query"][row, head, q])
                        @ each["key"][row, head, k]
                        / np.sqrt(size)
                        for each, size in ((teacher, 8), (student, 3))
                    )
                    errors.append((a - b) ** 2)
        np.testing.assert_allclose(found[row], np.mean(errors), rtol=1e-4)
    assert found[2] == 0


@pytest.mark.parametrize("heads", [1, 4])
def test_relations_are_those_of_minilm(heads):
    teacher, student = heads_of(2, 6), heads_of(4, 2)  # 12 columns, and 8
    found = losses.relations(teacher, student, heads, tf.constant(MASK)).numpy()
    for row in range(2):
        tokens, total = np.flatnonzero(MASK[row]), 0.0
        for name in ("query", "key", "value"):
            distributions = []
            for each in (teacher, student):
                # [heads, seq_len, size] -> [seq_len, columns], the heads end to end.
                columns = np.concatenate(list(np.float64(each[name][row])), axis=-1)
                parts = np.split(columns[tokens], heads, axis=-1)
                size = parts[0].shape[-1]
                distributions.append(
                    [
                        [softmax(p[t] @ p.T / np.sqrt(size)) for t in range(len(tokens))]
                        for p in parts
                    ]
                )
            pairs = zip(*distributions, strict=True)
            total += np.mean(
                [[divergence(p, q) for p, q in zip(*pair, strict=True)] for pair in pairs]
            )
        np.testing.assert_allclose(found[row], total, rtol=1e-4)
    assert found[2] == 0
