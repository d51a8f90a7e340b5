"""What README.md and the pages under docs/ say to do works, from top to bottom, on small data.

Each block of Python is run by itself: what it uses, it imports. Commands find the files that the
blocks before them have written.
"""

import ast
import contextlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import keras
import pytest

import bert_tf
from bert_tf.checkpoints import conversion
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.export import __main__ as export_command
from bert_tf.models.pretrainer import PreTrainer
from tests import tiny, tiny_questions, tiny_tags
from tests.buckets import Bucket, served_moto
from tests.tasks import tiny_texts
from tests.tasks.tiny_texts import write_lines

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HUB_NAMES = (
    "google-bert/bert-base-uncased",
    "google-bert/bert-base-cased",
    "sentence-transformers/all-MiniLM-L6-v2",
)
TAGGER = "dslim/bert-base-NER"
# Where pages have a server; the tests have theirs elsewhere.
PORT = "http://localhost:8501"
# Enough for one batch of the size that the pages have.
ROWS = 32
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMANDS = {"bert-tf": main, "python -m export": export_command.main}


def reviews(folder):
    tiny.write_labelled(folder)
    (folder / "dev.tsv").rename(folder / "unseen.tsv")
    tiny.write_labelled(folder)
    (folder.parent / "texts.txt").write_text("the cat sat\nthe dog ran\n")


def tracked_reviews(folder):
    """As `reviews`, for callbacks of trackers that write into the working folder."""
    for package in ("mlflow", "wandb"):
        pytest.importorskip(package, reason=f"requires {package}")
    os.environ |= {"MLFLOW_TRACKING_URI": "sqlite:///mlflow.db", "WANDB_MODE": "offline"}
    sys.path.insert(0, str(folder.parent))
    reviews(folder)


def similarity(folder):
    source = random.Random(0)
    for split in ("train", "dev"):
        lines = (
            f"{tiny.sentence(source, 3)},{tiny.sentence(source, 3)},{i % 6}" for i in range(ROWS)
        )
        write_lines(folder / f"{split}.csv", ["first,second,score", *lines])
    shutil.copy(folder / "dev.csv", folder / "unseen.csv")


def squad(folder):
    for seed, (split, rows) in enumerate({"train": ROWS, "dev": 6}.items()):
        tiny_questions.write_squad(folder / f"{split}-v1.1.json", tiny_questions.rows(rows, seed))


def endings(folder):
    source = random.Random(0)
    for split in ("train", "dev"):
        rows = (
            {"context": "the fish", "choices": [tiny.sentence(source, 3) for _ in "ab"], "label": 1}
            for _ in range(ROWS)
        )
        write_lines(folder / f"{split}.jsonl", map(json.dumps, rows))


def passages(folder):
    source = random.Random(0)
    for split in ("train", "dev"):
        lines = (
            f"the {tiny.WORDS[2 + i // 2 % 4]} {i // 2}\t{tiny.sentence(source, 3)}\t{i % 2}"
            for i in range(2 * ROWS)
        )
        write_lines(folder / f"{split}.tsv", ["query\tpassage\trelevance", *lines])


def scored_pairs(folder):
    for split in ("train", "dev"):
        lines = (f"{a}\t{b}\t{int(is_cat)}" for a, b, is_cat in tiny_texts.pairs(2 * ROWS))
        write_lines(folder / f"{split}.tsv", ["sentence1\tsentence2\tscore", *lines])


def animals(folder):
    """A collection in BEIR's form."""
    for name in ("corpus", "queries"):
        rows = ({"_id": each, "text": f"the {each} sat"} for each in ("cat", "dog"))
        write_lines(folder / f"{name}.jsonl", map(json.dumps, rows))
    judgements = ["query-id\tcorpus-id\tscore", "cat\tcat\t1", "dog\tdog\t1"]
    write_lines(folder / "qrels" / "test.tsv", judgements)


def sts_benchmark(folder):
    """Pairs with scores in the columns of the STS benchmark."""
    source = random.Random(0)
    columns = "g\tf\ty\t{0}\t{1}\t{2}\t{2}"
    rows = (columns.format(i, i / 2, tiny.sentence(source, 3)) for i in range(8))
    write_lines(folder / "sts-test.csv", rows)


def old_reviews(folder):
    """A classifier that a TensorFlow class of transformers 4 wrote."""
    source = ROOT / "tests/fixtures/huggingface_tf/BertForSequenceClassification"
    shutil.copytree(source, folder / "reviews")


def of_keras_hub(folder):
    """A preset of a classifier."""
    config = tiny.encoder_config(16, max_position_embeddings=128)
    model = bert_tf.TextClassifier(Encoder(config), tiny.tokenizer(), ["0", "1"])
    conversion.save(model, folder / "my_preset", "keras_hub", model.tokenizer)


def films(folder):
    """Reviews in Parquet files."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    rows = pyarrow.table({"review": ["a cat", "a dog"] * 16, "stars": ["good", "bad"] * 16})
    for name in ("train-0", "train-1", "validation"):
        parquet.write_table(rows, folder / f"{name}.parquet")


# Page -> the folder of its data, and what writes that.
PAGES = {
    "../README.md": (".", lambda folder: None),
    "how_to/task_objects.md": (".", tiny.write_vocabulary),
    "how_to/runs.md": ("reviews", reviews),
    "how_to/trackers.md": ("reviews", tracked_reviews),
    "how_to/exporting.md": ("reviews", reviews),
    "how_to/classification.md": ("reviews", reviews),
    "how_to/adding_a_task.md": (".", lambda folder: None),
    "how_to/zero_shot.md": (".", lambda folder: None),
    "how_to/long_texts.md": ("reviews", reviews),
    "how_to/regression.md": ("similarity", similarity),
    "how_to/question_answering.md": ("squad", squad),
    "how_to/token_classification.md": ("entities", tiny_tags.write_tagged),
    "how_to/entity_spans.md": ("annotated", lambda folder: None),
    "how_to/multiple_choice.md": ("endings", endings),
    "how_to/embedding.md": ("pairs", scored_pairs),
    "how_to/reranking.md": ("passages", passages),
    "how_to/pretraining.md": (".", lambda folder: tiny.write_corpus(folder, documents=24)),
    "how_to/vocabulary.md": (".", tiny.write_corpus),
    "reference/configuration.md": (".", lambda folder: None),
    "how_to/distillation.md": ("reviews", reviews),
    "how_to/adapters.md": ("reviews", reviews),
    "how_to/buckets.md": ("reviews", reviews),
    "how_to/phone.md": ("reviews", reviews),
    "how_to/retrieval.md": ("animals", animals),
    "how_to/hard_negatives.md": (".", lambda folder: None),
    "how_to/domain_text.md": (".", lambda folder: tiny.write_corpus(folder, documents=24)),
    "how_to/data_sets.md": ("films", films),
    "how_to/data_quality.md": ("reviews", reviews),
    "how_to/inspect.md": ("reviews", reviews),
    "how_to/uncertainty.md": ("reviews", reviews),
    "how_to/publishing.md": (".", lambda folder: None),
    "how_to/serving.md": (".", lambda folder: None),
    "how_to/checkpoints.md": (".", lambda folder: None),
    "results/exactness.md": ("stsbenchmark", sts_benchmark),
    "index.md": (".", lambda folder: None),
    "migrating/from_transformers.md": (".", old_reviews),
    "migrating/from_keras_hub.md": (".", of_keras_hub),
}
FAST = (
    "how_to/task_objects.md",
    "reference/configuration.md",
    "how_to/checkpoints.md",
    "how_to/publishing.md",
    "../README.md",
)
# Pages that use three layers of the stand-in for BERT-base; for the others it has one layer.
DEEP = ("how_to/distillation.md", "how_to/phone.md")
# Pages that start from a trained classifier, reviews.keras.
OF_A_MODEL = ("how_to/exporting.md", "how_to/publishing.md")
IN_A_BUCKET = "how_to/buckets.md"
SLOW = [page for page in PAGES if page not in FAST]
# What the blocks of docs/migrating/statements.md call their data.
DATA = {
    "texts": ["the cat sat", "a dog ran"] * 2,
    "labels": ["good", "bad"] * 2,
    "label_lists": [["late"], ["late", "cold"], [], ["rude"]],
    "beginnings": ["the cat"] * 2,
    "endings": [["sat .", "ran ."]] * 2,
    "right_numbers": [0, 1],
    "follows": [True, False],
    "first": ["the cat", "a dog"],
    "second": ["sat .", "ran ."],
    "scores": [1.0, 0.0],
    "questions": ["where ?"],
    "contexts": ["the cat sat on the mat ."],
    "relevance": [1],
    "answers": [{"text": "on the mat", "start": 12}],
    "words": [["the", "cat"], ["a", "dog"]],
    "tags": [["O", "B-X"], ["O", "B-X"]],
}


def write_checkpoint(folder, layers):
    """Writes a stand-in for BERT-base."""
    keras.utils.set_random_seed(0)
    tokenizer = tiny.tokenizer()
    config = tiny.encoder_config(
        16, num_hidden_layers=layers, initializer_range=0.02, max_position_embeddings=384
    )
    conversion.save(PreTrainer(Encoder(config)), folder, "huggingface", tokenizer)
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("docs") / "bert-base-uncased", layers=1)


@pytest.fixture(scope="module")
def reviews_file(checkpoint):
    """A trained classifier."""
    path = checkpoint.parent / "reviews.keras"
    labels = ["bad", "good"]
    bert_tf.TextClassifier.from_checkpoint(checkpoint, labels=labels).save(path)
    return path


def link(checkpoint, folder):
    """Makes the checkpoint stand for the published ones that the pages name."""
    for name in ("bert-base-uncased", *HUB_NAMES):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(checkpoint)


@pytest.fixture
def hub(checkpoint, monkeypatch):
    """A stand-in for the Hugging Face Hub, with one published tagger."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    folder = checkpoint.parent / "tagger"
    if not folder.exists():
        labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
        tagger = bert_tf.TokenClassifier.from_checkpoint(checkpoint, labels=labels)
        tagger.save_checkpoint(folder, "huggingface")

    def snapshot_download(name, **options):
        assert name == TAGGER
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)


@contextlib.contextmanager
def bucket_of(folder):
    """The bucket that a page names, with the data of that page."""
    pytest.importorskip("moto")
    with pytest.MonkeyPatch.context() as patch, served_moto() as proxy:
        patch.setenv("BERT_TF_CACHE", str(folder / "cache"))
        Bucket("s3", "my-bucket", proxy).put_folder(folder / "reviews", "reviews")
        yield


@contextlib.contextmanager
def served(line):
    """Starts a server, as `bert-tf serve … &` does; gives the address that stands for its own."""
    pytest.importorskip("uvicorn")
    arguments = shlex.split(line.removeprefix("bert-tf").removesuffix("&"))
    command = [sys.executable, "-m", "bert_tf", *arguments, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = iter(server.stderr.readline, "")
            url = next(
                found[1] for each in said if (found := re.search(r"ready: .* (http\S+)/", each))
            )
            threading.Thread(target=server.stderr.read, daemon=True).start()
            yield url
        finally:
            server.terminate()


def run_line(line):
    for command, run in COMMANDS.items():
        if line.startswith(f"{command} "):
            assert run(shlex.split(line.removeprefix(command))) == 0, line
            return
    raise AssertionError(f"not a command of ours: {line}")


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow if p in SLOW else ()) for p in PAGES]
)
def test_every_step_of_a_page_works(page, checkpoint, reviews_file, hub, tmp_path):
    data, write_data = PAGES[page]
    link(write_checkpoint(tmp_path / "deep", 4) if page in DEEP else checkpoint, tmp_path)
    if page in OF_A_MODEL:
        (tmp_path / "reviews.keras").symlink_to(reviews_file)
    (tmp_path / data).mkdir(exist_ok=True)
    write_data(tmp_path / data)
    with contextlib.chdir(tmp_path), contextlib.ExitStack() as servers:
        url = None
        if page == IN_A_BUCKET:
            servers.enter_context(bucket_of(tmp_path))
        for language, title, block in BLOCK.findall((DOCS / page).read_text()):
            if title:
                Path(title).write_text(block)
                if title.endswith(".py"):
                    subprocess.run([sys.executable, title], check=True)
            elif language == "sh":
                for line in block.splitlines():
                    if line.endswith(" &"):
                        url = servers.enter_context(served(line))
                    elif line.startswith("curl "):
                        line = line.replace("curl", "curl --fail --silent --show-error", 1)
                        subprocess.run(line.replace(PORT, url), shell=True, check=True)
                    else:
                        run_line(line)
            elif language == "yaml":
                Path("block.yaml").write_text(block)
                load_config("block.yaml")
            elif language == "python":
                block = block.replace(PORT, url) if url else block
                exec(compile(block, page, "exec"), {})


def statements(code):
    """How many statements a program has, those inside others included."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(code)))


def jobs():
    """Job -> (library, code) of each block of docs/migrating/statements.md."""
    _, *parts = re.split("^## ", (DOCS / "migrating/statements.md").read_text(), flags=re.MULTILINE)
    blocks = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
    return {part.splitlines()[0].lower(): dict(blocks.findall(part)) for part in parts}


FIRST_JOB = next(iter(jobs()))


@pytest.mark.parametrize(
    "job", [pytest.param(job, marks=() if job == FIRST_JOB else pytest.mark.slow) for job in jobs()]
)
def test_statements_of_ours_run(job, checkpoint, tmp_path, reviews_file):
    link(checkpoint, tmp_path)
    (tmp_path / "reviews.keras").symlink_to(reviews_file)
    with contextlib.chdir(tmp_path):
        exec(compile(jobs()[job]["bert_tf"], job, "exec"), dict(DATA))


def rows_of_jobs(page):
    """Job -> the other cells of its row in the tables of a page."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", page.read_text(), re.MULTILINE)
    return {row[0].lower(): row[1:] for row in rows if row[0].lower() in jobs()}


def test_the_readme_has_every_job_with_its_statements():
    rows = rows_of_jobs(ROOT / "README.md")
    counted = {job: str(statements(blocks["bert_tf"])) for job, blocks in jobs().items()}
    assert {job: cells[1] for job, cells in rows.items()} == counted


def test_statements_are_counted():
    told = rows_of_jobs(DOCS / "migrating" / "statements.md")
    assert told.keys() == {job.lower() for job in jobs()}
    for job, blocks in jobs().items():
        counted = [
            str(statements(blocks[name])) if name in blocks else None
            for name in ("bert_tf", "KerasHub", "transformers")
        ]
        assert int(counted[0]) <= 4
        for cell, count in zip(told[job], counted, strict=True):
            number = cell.split(",")[0]
            assert number == count if count else not number.isdecimal(), job


def test_every_page_with_something_to_run_is_run():
    pages = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if {"sh", "python"} & {language for language, _, _ in BLOCK.findall(path.read_text())}
    }
    assert pages | {"../README.md"} == {*PAGES, "migrating/statements.md"}
