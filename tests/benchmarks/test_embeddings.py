"""The comparison with sentence-transformers: the same data, batches and texts; kept results."""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.embeddings import __main__ as embeddings
from benchmarks.embeddings import contestant, data, sides
from benchmarks.embeddings.data import Pairs
from bert_tf.data.batching import ShuffledBatches
from bert_tf.errors import UserError


def squad(folder, articles=3):
    """Each article has two paragraphs of two questions."""
    names = itertools.count()

    def paragraph():
        number = next(names)
        questions = [{"id": f"{number}-{i}", "question": f" {number} {i}? "} for i in (0, 1)]
        return {"context": f"paragraph {number}", "qas": questions}

    content = {"data": [{"paragraphs": [paragraph(), paragraph()]} for _ in range(articles)]}
    path = folder / "dev-v1.1.json"
    path.write_text(json.dumps(content))
    return path


def test_sentences_are_read_with_scores_from_0_to_1(tmp_path):
    path = tmp_path / "sts.csv"
    path.write_text('g\tf\ty\t1\t2.500\ta "cat"\ta dog\ng\tf\ty\t2\t5\tx\ty\tmore\tcolumns\n')
    assert data.read_sts(path) == (['a "cat"', "x"], ["a dog", "y"], [0.5, 1.0])
    assert data.read_sts(path).head(1) == (['a "cat"'], ["a dog"], [0.5])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "line 1: 2 fields; the STS benchmark has 7"),
        ("g\tf\ty\t1\tmuch\ta\tb", "line 1: the score 'much' is not a number"),
    ],
)
def test_other_files_of_sentences_are_refused(tmp_path, line, message):
    (tmp_path / "sts.csv").write_text(line)
    with pytest.raises(UserError, match=message):
        data.read_sts(tmp_path / "sts.csv")


def test_questions_search_their_paragraphs(tmp_path):
    articles = data.read_articles(squad(tmp_path))
    passages, queries, relevant = data.collection_of(articles)
    assert (len(passages), len(queries)) == (6, 12)
    assert queries["3-1"] == "3 1?"
    assert passages[next(iter(relevant["3-1"]))] == "paragraph 3"
    # Whole paragraphs.
    assert len(data.collection_of(articles, questions=3).queries) == 4
    pairs = data.pairs_of(articles[1:])
    assert (pairs.first[0], pairs.second[0], pairs.scores) == ("2 0?", "paragraph 2", None)
    assert pairs.head(1) == (["2 0?"], ["paragraph 2"], None)


def test_a_file_of_another_form_is_refused(tmp_path):
    (tmp_path / "dev.json").write_text('{"data": [{"paragraphs": [{"context": "a"}]}]}')
    with pytest.raises(UserError, match=r"data\[0\].paragraphs\[0\] has no key 'qas'"):
        data.read_articles(tmp_path / "dev.json")


def test_the_peer_trains_on_the_batches_of_bert_tf():
    pairs = Pairs([f"a{i}" for i in range(11)], [f"b{i}" for i in range(11)])
    ours = ShuffledBatches(np.ones(11), 4, seed=3, group_by_length=False)
    expected = [ours.rows(step).tolist() for step in range(2 * ours.per_epoch)]
    for without_duplicates in (False, True):
        found = sides.batches(pairs, 2, 4, 3, without_duplicates)
        assert list(found) == expected


def test_no_text_is_twice_in_a_batch_of_the_peer():
    pairs = Pairs([f"a{i}" for i in range(24)], [f"b{i // 4}" for i in range(24)])
    found = list(sides.batches(pairs, 1, 4, 0, without_duplicates=True))
    assert len(found) > 3
    rows = [row for batch in found for row in batch]
    assert len(rows) == len(set(rows))
    for batch in found:
        assert len(batch) == len({pairs.second[row] for row in batch}) == 4


def test_a_step_embeds_the_next_batch(tmp_path, monkeypatch):
    asked = []

    class Side:
        def embed(self, texts):
            asked.append(texts)
            return np.zeros((len(texts), 2))

    monkeypatch.setattr(contestant, "open_side", lambda settings: Side())
    (tmp_path / "texts.json").write_text('["a", "b", "c", "d", "e"]')
    job = contestant.prepare({"texts": tmp_path / "texts.json", "batch": 2})
    for _ in range(3):
        job.step()
    assert asked == [["a", "b"], ["c", "d"], ["a", "b"]]
    assert job.outputs().shape == (2, 2)
    contestant.prepare({"texts": tmp_path / "texts.json", "batch": 7}).step()
    assert len(asked[-1]) == 7


@pytest.fixture
def arguments(tmp_path):
    for split in ("train", "dev", "test"):
        lines = [f"g\tf\ty\t{i}\t{i % 6}\tfirst {i}\tsecond {i}" for i in range(8)]
        (tmp_path / f"sts-{split}.csv").write_text("\n".join(lines))
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "model.safetensors").write_bytes(b"weights")
    return argparse.Namespace(
        checkpoint=tmp_path / "checkpoint",
        sts=tmp_path,
        squad=squad(tmp_path, articles=40),
        out=tmp_path / "out",
        tasks=["STS-B", "SQuAD"],
        seeds=2,
        epochs=1,
        batch_size=4,
        learning_rate=2e-5,
        max_length=128,
        train_rows=None,
        rows=None,
    )


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that were run; each text gets a vector that counts its characters."""
    done = []

    def run_job(job, scratch):
        done.append(job)
        texts = json.loads(Path(job["texts"]).read_text())
        counts = [[text.count(each) for each in "0123456789fs"] for text in texts]
        np.save(job["vectors"], np.array(counts, np.float32) + 0.1)

    monkeypatch.setattr(embeddings, "run_job", run_job)
    monkeypatch.setattr(embeddings, "_machine", lambda: {"processor": "EPYC", "cores": 2})
    return done


def test_a_table_of_the_checkpoint_as_it_is(arguments, jobs):
    arguments.out.mkdir()
    lines = embeddings.accuracy(embeddings.Bench(arguments))
    assert lines[0] == ("largest difference of a vector, STS-B test", "0.0e+00", "")
    names = [name for name, _, _ in lines[1:]]
    assert names[:3] == ["STS-B dev", "STS-B test", "SQuAD ndcg@10"]
    assert all(ours == theirs for _, ours, theirs in lines[1:])
    assert [job["settings"]["side"] for job in jobs] == ["bert_tf", "sentence-transformers"]


def test_fine_tunings_are_kept_one_by_one(arguments, jobs, monkeypatch):
    lines = embeddings.finetuning(embeddings.Bench(arguments))
    assert [name for name, _, _ in lines] == [
        "STS-B test, fine-tuned",
        *(f"SQuAD, last articles {each}, fine-tuned" for each in embeddings.RETRIEVAL),
    ]
    assert all("± 0.0000" in cell for _, *cells in lines for cell in cells)
    assert len(jobs) == 8
    assert jobs[0]["training"] == {
        "loss": "cosent",
        "epochs": 1,
        "batch_size": 4,
        "learning_rate": 2e-5,
        "seed": 0,
    }
    assert {job["training"]["loss"] for job in jobs[4:]} == {"ranking"}

    (arguments.out / "SQuAD-sentence-transformers-1.json").unlink()
    assert embeddings.finetuning(embeddings.Bench(arguments)) == lines
    assert len(jobs) == 9

    arguments.epochs = 2
    with pytest.raises(UserError, match="has epochs 1, not 2; remove it or choose another --out"):
        embeddings.finetuning(embeddings.Bench(arguments))


def test_a_checkpoint_without_weights_is_refused(arguments):
    (arguments.checkpoint / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"--checkpoint holds no \*.safetensors"):
        embeddings.Bench(arguments)


def test_ratios_of_speed_are_to_the_faster_way_of_the_peer():
    seconds = {sides.OURS: [0.9, 1.0, 1.1], sides.SERVED: [0.4, 0.5, 0.6]}
    seconds |= {sides.THEIRS: [3.0, 8.0, 9.0], f"{sides.THEIRS}, one thread": [0.7, 0.8, 0.9]}
    line = embeddings.speed_line("texts/s", 32, {"seconds": seconds, "busy": 0.01})
    expected = "predict 32.0 (0.80x); SavedModel 64.0 (1.60x)"
    assert line == ("texts/s", expected, "40.0, one thread")


def test_figures_of_a_busy_machine_are_marked():
    seconds = dict.fromkeys((sides.OURS, sides.SERVED, sides.THEIRS), [1.0, 1.0, 1.0])
    name, *_ = embeddings.speed_line("texts/s", 1, {"seconds": seconds, "busy": 0.57})
    assert name == "texts/s (NOT VALID: other work took 57% of the machine)"
