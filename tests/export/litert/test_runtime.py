"""A file in a process that has LiteRT's own runtime, and neither TensorFlow nor bert_tf."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bert_tf.encoder.encoder import INPUTS
from bert_tf.export.litert.calibration import rows_of_texts
from bert_tf.export.litert.conversion import padded
from tests.tasks import tiny_objects

TEXTS = ["the cat sat", "a dog ran under the log ."]
PROGRAM = """
import json, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter

rows = json.load(sys.stdin)
answer = Interpreter(sys.argv[1]).get_signature_runner("serving_default")
found = [answer(**{name: np.array(ids, np.int32) for name, ids in row.items()}) for row in rows]
assert not {"tensorflow", "keras", "bert_tf"} & set(sys.modules)
print(json.dumps([each["probabilities"].tolist() for each in found]))
"""


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_litert_alone_gives_the_answers(tmp_path, precision):
    model = tiny_objects.classifier(labels=["bad", "good"], pair=False)
    model.export(tmp_path / "model.tflite", format="litert", lengths=[16], precision=precision)
    rows = rows_of_texts(model, TEXTS)
    given = [{name: ids.tolist() for name, ids in padded(row, 16).items()} for row in rows]

    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model.tflite")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    # Rows are recorded in the order in which they are computed, the longest first.
    features = [{name: row[name][np.newaxis] for name in INPUTS} for row in rows]
    logits = np.concatenate([model(each).numpy() for each in features])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.concatenate(json.loads(done.stdout)), expected, atol=1e-5)


STRINGS = """
import json, sys
import numpy as np
import tensorflow_text
from ai_edge_litert.interpreter import InterpreterWithCustomOps

operations = tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS
file = InterpreterWithCustomOps(model_path=sys.argv[1], custom_op_registerers=operations)
answer = file.get_signature_runner("serving_default")
found = [answer(text=np.array([text.encode()], object)) for text in sys.argv[2:]]
print(json.dumps([each["probabilities"][0].tolist() for each in found]))
"""


def test_litert_takes_the_operations_of_text(tmp_path):
    model = tiny_objects.classifier(labels=["bad", "good"], pair=False)
    model.export(tmp_path / "model.tflite", format="litert", inputs="strings")

    command = [sys.executable, "-c", STRINGS, str(tmp_path / "model.tflite"), *TEXTS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    expected = [[*each["probabilities"].values()] for each in model.predict(TEXTS, verbose=0)]
    np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-5)
