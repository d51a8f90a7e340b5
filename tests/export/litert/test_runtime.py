"""A file in LiteRT's own runtime, also in a process without TensorFlow and bert_tf."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow_text
from ai_edge_litert.interpreter import InterpreterWithCustomOps

from bert_tf.export.calibration import rows_of_texts
from bert_tf.export.litert.conversion import padded

TEXTS = ["the cat sat", "a dog ran under the log ."]
PROGRAM = """
import json, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter

rows = json.load(sys.stdin)
for path in sys.argv[1:]:
    answer = Interpreter(path).get_signature_runner("serving_default")
    found = [answer(**{name: np.array(ids, np.int32) for name, ids in row.items()}) for row in rows]
    print(json.dumps([each["probabilities"][0].tolist() for each in found]))
assert not {"tensorflow", "keras", "bert_tf"} & set(sys.modules)
"""


@pytest.mark.end_to_end
def test_litert_alone_gives_the_answers(models, lite_file):
    model = models("multi_label")
    files = [lite_file("multi_label"), lite_file("multi_label", precision="int8")]
    rows = rows_of_texts(model, TEXTS)
    given = [{name: ids.tolist() for name, ids in padded(row, 32).items()} for row in rows]

    command = [sys.executable, "-c", PROGRAM, *files]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    # Rows are recorded in the order in which they are computed, the longest first.
    answers = model.predict(sorted(TEXTS, key=len, reverse=True), verbose=0)
    expected = [[*each["probabilities"].values()] for each in answers]
    for line in done.stdout.splitlines():
        np.testing.assert_allclose(json.loads(line), expected, atol=1e-5)


@pytest.mark.end_to_end
def test_litert_takes_the_operations_of_text(models, lite_file):
    operations = tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS
    path = str(lite_file("classification", inputs="strings"))
    file = InterpreterWithCustomOps(model_path=path, custom_op_registerers=operations)
    answer = file.get_signature_runner("serving_default")
    found = [answer(text=np.array([text.encode()], object))["probabilities"][0] for text in TEXTS]

    answers = models("classification").predict(TEXTS, verbose=0)
    expected = [[*each["probabilities"].values()] for each in answers]
    np.testing.assert_allclose(found, expected, atol=1e-5)
