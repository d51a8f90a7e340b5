"""The graph that TensorFlow makes of an export has the operations that make it fast."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Of one block: four products, each with its bias, and with GELU or the residual sum; two products
# of attention, one with its scale and its mask; heads turned and padding removed by two gathers.
BLOCK = {
    "_MklNativeFusedMatMul": 4,
    "_MklLayerNorm": 2,
    "_MklBatchMatMulV2": 1,
    "_MklFusedBatchMatMulV2": 1,
    "_MklSoftmax": 1,
    "GatherV2": 2,
    "Unpack": 1,
}
WEIGHTS = {"ReadVariableOp": 4}


@pytest.fixture(scope="module")
def found():
    """What `optimized_graph.py` prints: in a process of its own, where oneDNN is turned on."""
    script = Path(__file__).with_name("optimized_graph.py")
    done = subprocess.run([sys.executable, "-P", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_a_block_has_no_operation_but_these(found, activation):
    assert found[activation]["parts"]["layer_1"] == BLOCK | WEIGHTS


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_nothing_is_transposed_in_any_block(found, activation):
    parts = found[activation]["parts"]
    for block in ("layer_0", "layer_1", "layer_2"):
        assert BLOCK.items() <= parts[block].items()
        assert not {"Transpose", "_MklTranspose", "Mean", "AddN"} & parts[block].keys()


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_the_numbers_are_those_of_the_model(found, activation):
    # The kernel of LayerNorm adds 1e-3 to every variance, which the weights have to make up for.
    assert found[activation]["difference"] < 1e-5
