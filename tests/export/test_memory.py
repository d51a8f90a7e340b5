"""However long a text or large a batch is, answering takes less than 2 GiB besides the model.

One part is for memory that grows with the texts. It is measured with a tiny model, on a megabyte
and on a thousand rows. The rest is for the model itself, which computes in chunks and so does not
grow with the texts. It is measured at the width of BERT-base, on texts of many chunks.
"""

import json
import subprocess
import sys

import pytest

from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from tests.export.conftest import FAMILIES, save

SERVED = [family for family in FAMILIES if family != "hub"]
# MiB.
FOR_TEXTS, FOR_CHUNKS = 768, 1280

# Answers a short text first, so that the model and the memory that TensorFlow allocates once are
# not counted. The peak may be that of loading, so the number is never too small.
_ASK = """
import json, resource, sys
import tensorflow as tf, tensorflow_text
from benchmarks.memory import peak_bytes

def now():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize() >> 20

def ask(name, text, rows):
    answer = loaded.signatures[name]
    texts = {1: [text] * rows, 2: [[text, "a dog"]] * rows}
    answer(**{
        key: tf.constant(texts[spec.shape.rank] if key != "question" else ["the cat"] * rows)
        for key, spec in answer.structured_input_signature[1].items()
    })

folder, requests = sys.argv[1], json.loads(sys.argv[2])
loaded = tf.saved_model.load(folder)
for name in loaded.signatures:
    ask(name, "the [MASK] sat", 1)
before = now()
for text, times, rows in requests:
    for name in loaded.signatures:
        ask(name, text * times, rows)
print((peak_bytes() >> 20) - before)
"""


def growth(folder, *requests: tuple[str, int, int]) -> int:
    """MiB that a process takes besides the model, for requests (text, its repetitions, rows)."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK, folder, json.dumps(requests)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("family", SERVED)
def test_as_many_pieces_as_bytes(exported, family):
    """Here windows and decoding take the memory."""
    megabyte, many = ("!", 2**20, 1), ("cat [MASK]. ", 80, 1000)
    grown = growth(exported(family), megabyte, many)
    print(f"{family}: {grown} MiB")
    assert grown < FOR_TEXTS


@pytest.mark.slow
@pytest.mark.parametrize("family", SERVED)
def test_a_model_as_wide_as_base(tokenizer, tmp_path, family):
    """One layer is enough: in serving no layer's memory outlives it."""
    config = EncoderConfig(vocab_size=tokenizer.vocab_size, num_hidden_layers=1)
    model = FAMILIES[family](Encoder(config), tokenizer)
    folder = save(family, model, tokenizer, tmp_path / family)
    words = "the cat sat on the mat. a bird flew over a tree. "
    grown = growth(folder, (words, 1500, 1), (words + "[MASK] ", 12, 150))
    print(f"{family}: {grown} MiB")
    assert grown < FOR_CHUNKS
