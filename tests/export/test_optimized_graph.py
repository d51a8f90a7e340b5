"""The graph that TensorFlow makes of an export has the operations that make it fast."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Of one shard of a block: four products, each with its bias, and with GELU or the residual sum; two
# products of attention, one with its scale and its mask; heads turned and padding removed by two
# gathers.
SHARD = {
    "_MklNativeFusedMatMul": 4,
    "_MklBatchMatMulV2": 1,
    "_MklFusedBatchMatMulV2": 1,
    "_MklSoftmax": 1,
    "GatherV2": 2,
    "Unpack": 1,
}
# A block also has the sums of its shards.
BLOCK = {operation: 2 * number for operation, number in SHARD.items()} | {
    "_MklLayerNorm": 2,
    "AddN": 2,
}
WEIGHTS = {"ReadVariableOp": 8}


@pytest.fixture(scope="module", params=["gelu_new", pytest.param("gelu", marks=pytest.mark.slow)])
def found(request):
    """What `optimized_graph.py` prints: in a process of its own, where oneDNN is turned on."""
    script = Path(__file__).with_name("optimized_graph.py")
    command = [sys.executable, "-P", script, request.param]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.end_to_end
def test_a_block_has_no_operation_but_these(found):
    assert found["parts"]["layer_1"] == BLOCK | WEIGHTS


@pytest.mark.end_to_end
def test_nothing_is_transposed_in_any_block(found):
    parts = found["parts"]
    for block in ("layer_0", "layer_1", "layer_2"):
        assert BLOCK.items() <= parts[block].items()
        assert not {"Transpose", "_MklTranspose", "Mean"} & parts[block].keys()


@pytest.mark.end_to_end
def test_the_numbers_are_those_of_the_model(found):
    # `_MklLayerNorm` adds 1e-3 to every variance, which the weights must compensate for.
    assert found["difference"] < 1e-5
