"""AdamW and its schedule do what google-research's optimizer does.

`google_optimizer.npz` was made by `tests/fixtures/make_google_optimizer.py` with
google-research/bert at commit eedf571.
"""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.optimization import LAMB, AdamW, WarmupLinearDecay

FIXTURE = Path(__file__).parents[1] / "fixtures" / "google_optimizer.npz"


def recorded(kind: str) -> dict[str, np.ndarray]:
    arrays = np.load(FIXTURE)
    return {k.split(":")[1]: arrays[k] for k in arrays.files if k.startswith(kind + ":")}


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float64", lambda weight: 1e-12), ("float32", lambda weight: 2e-6 * np.abs(weight).max())],
)
def test_a_hundred_steps_move_every_weight_as_the_reference_does(dtype, tolerance):
    start, gradients, expected = (recorded(kind) for kind in ("start", "gradients", dtype))
    variables = [keras.Variable(value.astype(dtype), dtype=dtype) for value in start.values()]
    for variable, name in zip(variables, start, strict=True):
        variable._path = name.replace("LayerNorm", "layer_norm")
    optimizer = AdamW(WarmupLinearDecay(1e-2, total_steps=95, warmup_steps=10))
    steps = len(next(iter(gradients.values())))
    assert steps == 100
    for step in range(steps):
        optimizer.apply([tf.constant(gradients[n][step], dtype) for n in start], variables)
        for variable, name in zip(variables, start, strict=True):
            theirs = expected[name][step]
            assert theirs.dtype == variable.dtype == dtype
            np.testing.assert_allclose(
                variable.numpy(), theirs, rtol=0, atol=tolerance(theirs), err_msg=f"{name} {step}"
            )


# Weights after each of six updates by torch.optim.AdamW of PyTorch 2.13 in float64, from 1, -2 and
# 0.5, with rate 0.01, decay 0.1 and epsilon 1e-6, the gradients being those of the test below.
OF_TORCH = [
    [0.989000099999, -1.988000499975, 0.509499996667],
    [0.978359340675, -1.976012999450, 0.508464181056],
    [0.967801013427, -1.964037486426, 0.511313649335],
    [0.957229144776, -1.952073948914, 0.510276020072],
    [0.946599570448, -1.940122374940, 0.511809893696],
    [0.935888673102, -1.928182752540, 0.510771768188],
]


@pytest.mark.parametrize("skip_nonfinite", [False, True])  # one operation, and the formula
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-6)])
def test_with_bias_correction_it_is_the_one_of_torch(dtype, tolerance, skip_nonfinite):
    variable = keras.Variable(np.array([1.0, -2.0, 0.5], dtype), dtype=dtype)
    optimizer = AdamW(
        0.01, 0.1, bias_correction=True, clip_norm=None, skip_nonfinite=skip_nonfinite
    )
    for step, expected in enumerate(OF_TORCH, start=1):
        gradient = tf.constant([0.1 * step, -0.02, 3.0 * (-1) ** step], dtype)
        optimizer.apply([gradient], [variable])
        np.testing.assert_allclose(variable.numpy(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("clip_norm", "expected"), [(None, 5.0), (5.0, 5.0), (2.5, 2.5)])
def test_a_gradient_is_shortened_if_it_is_longer_than_the_norm(clip_norm, expected):
    weight = keras.Variable(np.zeros(2, "float32"))
    optimizer = AdamW(0.1, clip_norm=clip_norm)
    optimizer.apply([tf.constant([3.0, 4.0])], [weight])
    # After one update the first moment is a tenth of the gradient.
    (moment,) = (v for v in optimizer.variables if v.path.endswith("momentum"))
    np.testing.assert_allclose(moment, np.float32([0.06, 0.08]) * expected, rtol=1e-6)


def test_layer_norm_and_biases_do_not_decay():
    def moved(path: str, **options) -> bool:
        variable = keras.Variable(np.ones(3, "float32"))
        variable._path = path
        AdamW(0.1, weight_decay=0.5, **options).apply([tf.zeros(3)], [variable])
        return variable.numpy().tolist() == pytest.approx([0.95] * 3)

    assert moved("encoder/layer_0/output/kernel")
    assert moved("bias_of_layer_norm_papers/classifier/kernel")  # a model's name says nothing
    assert not moved("encoder/layer_0/output/bias")
    assert not moved("encoder/layer_0/output_layer_norm/gamma")
    assert not moved("masked_lm/output_bias")
    # Which weights do not decay can be chosen.
    assert not moved("encoder/kernel", exclude_from_weight_decay=["kernel"])
    assert moved("encoder/bias", exclude_from_weight_decay=["kernel"])


def test_repeated_rows_of_an_embedding_gradient_are_summed_before_clipping():
    rows = tf.IndexedSlices(tf.constant([[3.0], [1.0]]), tf.constant([1, 1]), tf.constant([3, 1]))
    results = []
    for gradient in (rows, tf.convert_to_tensor(rows)):
        variable = keras.Variable(np.ones((3, 1), "float32"))
        AdamW(0.1, clip_norm=2.0).apply([gradient], [variable])
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)


def test_more_weights_are_excluded_as_in_keras():
    variables = [keras.Variable([2.0], name=name) for name in ("kernel", "table", "other")]
    optimizer = AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=variables[:1], var_names=["tab"])
    again = AdamW.from_config(optimizer.get_config())
    for each in (optimizer, again):
        for variable in variables:
            variable.assign([2.0])
        each.apply([tf.zeros([1])] * 3, variables)
        assert [float(variable[0]) for variable in variables] == pytest.approx([2.0, 2.0, 1.9])


@pytest.mark.parametrize("make", [AdamW, LAMB])
def test_the_optimizer_and_its_schedule_come_back_from_their_configuration(make):
    options = {
        "weight_decay": 0.1,
        "beta_1": 0.8,
        "beta_2": 0.99,
        "epsilon": 1e-5,
        "clip_norm": None,
        "exclude_from_weight_decay": ["kernel"],
        "rate_factors": {"layer_0": 0.5},
        "skip_nonfinite": True,
    }
    if make is AdamW:
        options["bias_correction"] = True
    optimizer = make(WarmupLinearDecay(1e-4, 100, 10), **options)
    saved = keras.optimizers.serialize(optimizer)
    again = keras.optimizers.deserialize(saved)
    assert type(again) is make
    assert {name: saved["config"][name] for name in options} == options
    assert again.get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    ("decay_after_warmup", "rates"),
    [
        (False, {0: 0.0, 5: 0.5, 9: 0.9, 10: 0.9, 50: 0.5, 100: 0.0, 120: 0.0}),
        # Those of transformers 5.23, `get_linear_schedule_with_warmup`.
        (True, {0: 0.0, 5: 0.5, 9: 0.9, 10: 1.0, 55: 0.5, 100: 0.0, 120: 0.0}),
    ],
)
def test_the_rate_rises_and_falls_in_straight_lines(decay_after_warmup, rates):
    schedule = WarmupLinearDecay(1.0, 100, 10, decay_after_warmup)
    again = WarmupLinearDecay.from_config(schedule.get_config())
    for each in (schedule, again):
        assert {step: float(each(step)) for step in rates} == pytest.approx(rates)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((0, 0), "total_steps must be at least 1, got 0"),
        ((10, 11), r"warmup_steps must be between 0 and total_steps \(10\), not 11"),
        ((10, -1), "warmup_steps must be at least 0, got -1"),
    ],
)
def test_a_schedule_of_no_steps_or_of_more_warm_up_than_steps_is_refused(steps, told):
    with pytest.raises(UserError, match=told):
        WarmupLinearDecay(1.0, *steps)


def test_a_schedule_may_be_all_warm_up():
    for after in (False, True):
        schedule = WarmupLinearDecay(1.0, 10, warmup_steps=10, decay_after_warmup=after)
        assert float(schedule(5)) == pytest.approx(0.5)


def test_the_state_is_named_by_weight_and_not_by_number():
    weights = [keras.Variable([1.0], name=name) for name in ("a", "b")]
    optimizer = AdamW(1e-3)
    optimizer.build(weights[::-1])
    names = {id(weight): f"layer/{weight.name}" for weight in weights}
    state = optimizer.state(names)
    moments = {f"{kind}/layer/{name}" for kind in ("momentum", "velocity") for name in "ab"}
    assert state.keys() == {*moments, "iteration", "learning_rate"}
    assert {id(each) for each in state.values()} == {id(each) for each in optimizer.variables}

    optimizer.apply([tf.constant([2.0]), tf.constant([0.0])], weights[::-1])
    assert float(state["momentum/layer/b"][0]) > 0 == float(state["momentum/layer/a"][0])
    assert int(state["iteration"]) == 1
