"""The same global batches give the same losses and weights on one device and on several."""

import functools
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.optimization import AdamW
from tests.models.on_replicas import CASES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of all cases on a number of devices; each number of devices runs once."""

    @functools.cache
    def of(devices: int) -> dict[str, np.ndarray]:
        out = tmp_path_factory.mktemp("replicas") / "out.npz"
        command = [sys.executable, "-m", "tests.models.on_replicas", str(devices), str(out), *CASES]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return dict(np.load(out))

    return of


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("case", CASES)
def test_several_devices_train_as_one(case, devices, results):
    found = results(devices)
    one, several = (
        {key: value for key, value in found.items() if key.startswith(f"{place}:{case}:")}
        for place in ("one", "several")
    )
    assert len(one) == len(several) > 20
    for key, value in one.items():
        kind = key.split(":")[2].split()[0]
        tolerance = 1e-6 if kind == "weight" else 1e-5
        other = several[key.replace("one:", "several:", 1)]
        np.testing.assert_allclose(other, value, rtol=0, atol=tolerance, err_msg=key)


@pytest.mark.slow
def test_the_norm_that_clips_is_that_of_the_summed_gradient(results):
    weight = keras.Variable(np.ones(2, "float32"))
    AdamW(0.1, clip_norm=1.0, epsilon=1.0).apply([tf.constant([0.0, 1.0])], [weight])
    found = results(2)["clipped_step"]
    np.testing.assert_allclose(found, weight.numpy(), rtol=0, atol=1e-7)


@pytest.mark.slow
def test_devices_drop_different_elements(results):
    masks = results(2)["dropout"].reshape(4, 64)
    # Two throws of 64 coins agree in about 32; in more than 50 only once in a million times.
    for one in range(4):
        for other in range(one):
            assert 14 < (masks[one] == masks[other]).sum() < 50
