"""`bert-tf check` finds what is planted in the data of every family."""

import json
import re

import pytest

from bert_tf.checkpoints import conversion
from bert_tf.cli.parser import main
from bert_tf.encoder.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer
from tests import tiny
from tests.tasks.reranking.tiny_beir import write_beir

LONG = "the cat sat on the mat " * 8


def checked(folder, task, data, *options, capsys):
    """What is printed: (what, split) -> (count, of, first)."""
    tiny.write_vocabulary(folder)
    path = folder / "run.yaml"
    path.write_text(
        f"task: {task}\ndata: {{path: ., {data}}}\ntokenizer: {{vocab: vocab.txt}}\n"
        + tiny.MODEL
        + "train: {epochs: 1, batch_size: 2, max_length: 24}\n"
    )
    code = main(["check", str(path), *options])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    form = re.compile(r"(.+?) +(train|dev\S*) +(\d+) of (\d+) +\S+%(?:  (.*))?")
    lines = [form.fullmatch(line).groups("") for line in printed.out.splitlines()]
    return {(w, s): (int(n), int(of), first) for w, s, n, of, first in lines}


@pytest.fixture(scope="module")
def pretrained_checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "encoder"
    encoder = Encoder(tiny.encoder_config())
    conversion.save(PreTrainer(encoder), folder, "huggingface", tiny.tokenizer())
    return str(folder)


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))


def test_a_table_of_texts(tmp_path, capsys):
    train = ["the cat sat\tgood", "The  CAT sat\tbad", "the cat sat\tgood", f"{LONG}\tgood"]
    train += [
        "cafÃ© cat\tbad",
        "cafe\u0301\tbad",
        "\ufffd dog\tgood",
        "a \x1b[2J dog\tgood",
        " \tbad",
    ]
    write(tmp_path / "train.tsv", "text\tlabel", *train)
    dev = ["the cat SAT\tgood", "the cat sat on the mat " * 8 + "on\tbad", "fish fish\tgood"]
    write(tmp_path / "dev.tsv", "text\tlabel", *dev)
    page = tmp_path / "page.html"
    options = ["--out", str(page)]
    found = checked(tmp_path, "classification", "format: tsv", *options, capsys=capsys)
    expected = {
        "duplicates": (2, "train.tsv, line 3 = ", "train.tsv, line 4 = "),
        "duplicates of another label": (1, "train.tsv, line 3 = "),
        "more than 24 tokens": (1, "train.tsv, line 5"),
        "UTF-8 read as another encoding": (1, "train.tsv, line 6"),
        "accents as separate characters": (1, "train.tsv, line 7"),
        "replacement characters (U+FFFD)": (1, "train.tsv, line 8"),
        "control characters": (1, "train.tsv, line 9"),
        "empty texts": (1, "train.tsv, line 10"),
        # cafa©, cafe, [ and 2j; BERT removes U+FFFD and control characters.
        "[UNK] words": (4, "cafa© (1)"),
        "class good": (5,),
        "class bad": (4,),
    }
    assert {what for what, split in found if split == "train"} == expected.keys()
    for what, (count, *places) in expected.items():
        assert found[what, "train"][0] == count, what
        assert all(place in found[what, "train"][2] for place in places), what
    assert found["also in train", "dev"][:2] == (1, 3)
    assert re.search(r"dev.tsv, line 2 = .*train.tsv, line 2", found["also in train", "dev"][2])
    assert found["almost the same in train", "dev"][0] == 1
    assert re.search(r"dev.tsv, line 3 = .*line 5", found["almost the same in train", "dev"][2])
    text = page.read_text()
    for title in ("train: tokens of a row", "train: [UNK] words", "dev: classes"):
        assert f"<h2>{title}</h2>" in text
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")


def test_what_acts_on_a_terminal_or_a_page_is_escaped(tmp_path, capsys):
    tiny.write_vocabulary(tmp_path)
    lines = [json.dumps({"text": "the <b>x</b> cat", "label": f"<i>{c}\u202e"}) for c in "ab"]
    write(tmp_path / "train.jsonl", *lines)
    page = tmp_path / "page.html"
    found = checked(tmp_path, "classification", "format: jsonl", "--out", str(page), capsys=capsys)
    assert found["class <i>a\\u202e", "train"][:2] == (1, 2)
    assert "<i>" not in page.read_text() and "&lt;i&gt;a\\u202e" in page.read_text()


def conll(*sentences):
    return "\n\n".join("\n".join(f"{word} O" for word in each.split()) for each in sentences)


def squad(*rows):
    paragraphs = [
        {
            "context": c,
            "qas": [
                {"id": str(i), "question": q, "answers": [{"text": a, "answer_start": c.index(a)}]}
            ],
        }
        for i, (q, c, a) in enumerate(rows)
    ]
    return json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]})


def table(header, *rows):
    return "\n".join([header, *rows])


def lines_of(*rows):
    return "\n".join(map(json.dumps, rows))


CHOICES = {"context": "the cat", "choices": ["sat", LONG], "label": 1}
SPANS = {"text": "the cat sat", "spans": [{"start": 4, "end": 7, "label": "animal"}]}
# Of each family two equal rows, and a third; the first is in the dev file too. Then the number of
# rows of more than 24 tokens, and a class with its number.
FAMILIES = {
    "classification": (
        "format: csv, text_columns: [a, b], label_column: y",
        "csv",
        table("a,b,y", "the cat,sat,1", "the cat,sat,1", f"{LONG},ran,0"),
        1,
        ("1", 2),
    ),
    "multi_label_classification": (
        "format: tsv",
        "tsv",
        table("text\tlabel", "the cat\tx", "the cat\tx", f"{LONG}\tx,y"),
        1,
        ("x", 3),
    ),
    "regression": (
        "format: tsv",
        "tsv",
        table("text\tlabel", "cat\t1", "cat\t2", "dog\t3"),
        0,
        None,
    ),
    "multi_target_regression": (
        "format: tsv, label_columns: [p, q]",
        "tsv",
        table("text\tp\tq", "cat\t1\t2", "cat\t1\t2", "dog\t3\t3"),
        0,
        None,
    ),
    "question_answering": (
        "format: squad, train: train.json, dev: dev.json",
        "json",
        squad(*[("who", "the cat sat", "cat")] * 2, ("who", f"{LONG}sat", "sat")),
        1,
        None,
    ),
    "token_classification": (
        "format: conll",
        "conll",
        conll("cat sat", "cat sat", LONG).replace("cat O", "cat B-animal"),
        1,
        ("B-animal", 10),
    ),
    "multiple_choice": (
        "format: jsonl",
        "jsonl",
        lines_of(CHOICES, CHOICES, CHOICES | {"context": "a dog"}),
        3,
        ("1", 3),
    ),
    "reranking": (
        "format: jsonl",
        "jsonl",
        lines_of(
            *[{"query": "cat", "positive": "the cat", "negatives": ["a log"]}] * 2,
            {"query": "dog", "positive": LONG},
        ),
        1,
        None,
    ),
    "embedding": (
        "format: tsv",
        "tsv",
        # Each text is read alone: two of twenty tokens are not too long.
        table(
            "anchor\tpositive",
            "cat\tthe cat",
            "cat\tthe cat",
            "\t".join([" ".join(["dog"] * 20)] * 2),
        ),
        0,
        None,
    ),
}


@pytest.mark.end_to_end
@pytest.mark.parametrize("task", FAMILIES)
def test_every_family(task, tmp_path, capsys):
    data, ending, text, long, label = FAMILIES[task]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.{ending}").write_text(text + "\n")
    found = checked(tmp_path, task, data, capsys=capsys)
    assert found["duplicates", "train"][:2] == (1, 3)
    assert found["duplicates of another label", "train"][0] == (task == "regression")
    assert found["also in train", "dev"][:2] == (3, 3)
    assert found["more than 24 tokens", "train"][:2] == (long, 3)
    classes = {
        what: found[what, split][0]
        for what, split in found
        if what.startswith("class ") and split == "train"
    }
    assert (not classes) == (label is None)
    if label is not None:
        assert classes[f"class {label[0]}"] == label[1]


def test_entities_by_characters(tmp_path, capsys):
    for split in ("train", "dev"):
        write(
            tmp_path / f"{split}.jsonl", json.dumps(SPANS), json.dumps(SPANS | {"text": "the cat"})
        )
    found = checked(tmp_path, "token_classification", "format: spans", capsys=capsys)
    assert found["class animal", "train"][:2] == (2, 2)
    assert found["also in train", "dev"][:2] == (2, 2)


def test_a_collection_has_no_dev_rows(tmp_path, capsys):
    write_beir(tmp_path)
    found = checked(tmp_path, "embedding", "format: beir", capsys=capsys)
    assert {split for _, split in found} == {"train"}


def test_a_file_with_its_task_and_checkpoint(tmp_path, capsys, monkeypatch, pretrained_checkpoint):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.tsv", "text\tlabel", "the cat\tgood", "a dog\tbad")
    command = ["check", "train.tsv", "--task", "classification", "--checkpoint"]
    assert main([*command, pretrained_checkpoint, "--set", "train.max_length=3"]) == 0
    printed = capsys.readouterr()
    assert re.search("more than 3 tokens +train +2 of 2 ", printed.out)
    assert "dev.tsv is skipped: it does not exist" in printed.err


@pytest.mark.parametrize(
    "options, said",
    [
        (
            ["--task", "classification"],
            "no vocabulary is given; set tokenizer.vocab, or init.checkpoint",
        ),
        (["--task", "nothing", "--checkpoint", "c"], "the key task 'nothing' is not known"),
        (["--task", "regression", "--checkpoint", "./missing"], "checkpoint not found: missing"),
        (["--out", "page.pdf"], "--out page.pdf must end in .html"),
        (["--set", "data.train=other.tsv"], "other.tsv"),
    ],
)
def test_mistakes(options, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tiny.write_finetuning(tmp_path)
    assert main(["check", str(path), *options]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
