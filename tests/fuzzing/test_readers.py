"""Whatever stands in a file, reading it gives a result or one line that says what is wrong.

It ends no process, takes only seconds and limited memory, runs nothing, writes nothing, and opens
nothing outside the folder that it was given.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READERS = (
    *("yaml", "vocabulary", "tfrecord", "token shards", "safetensors", "Hugging Face"),
    *("Hugging Face, sharded", "Hugging Face, HDF5", "cross-encoder", "bert_tf", "TF1"),
    *(
        "TF1, whole",
        "Model Garden",
        "TF Hub",
        ".keras",
        ".tflite",
        "record",
        "corpus, sentence_per_line",
    ),
    *("corpus, document_per_file", "corpus, jsonl", "corpus, wikitext", "predict", "squad"),
    *("conll", "tsv", "csv", "jsonl", "GLUE", "codah", "swag", "ranking, jsonl", "ranking, tsv"),
    *("ranking, triples", "peft", "parquet", "arrow"),
)


def fuzz(folder: Path, inputs: int, *readers: str) -> str:
    """What is printed for `inputs` inputs for each of the readers, or for all of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzzing.run", str(inputs), folder, *readers],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{folder}: {done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.slow
def test_every_reader_is_given_some(tmp_path):
    told = fuzz(tmp_path, 10)
    assert [line.partition(":")[0] for line in told.splitlines()] == list(READERS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("reader", READERS)
def test_ten_thousand_inputs_each(tmp_path, reader):
    # A model is made of each `.keras` file that is read, and a copy of each table.
    is_slow = reader in (".keras", "parquet", "arrow")
    print(fuzz(tmp_path, 2_000 if is_slow else 10_000, reader))
