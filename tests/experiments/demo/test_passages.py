"""The demo's labelled passages and its prose: names masked, classes even, nothing leaks."""

import dataclasses
import random
import re
from collections import Counter

import pytest

from bert_tf.errors import UserError
from bert_tf.experiments.demo import passages
from bert_tf.experiments.demo.docstrings import Passage

SIZES = {"train": 6, "dev": 3, "test": 3}
LIBRARIES = ("letters", "parcels", "vans")


def sentence(rng: random.Random, length: int = 12) -> str:
    words = ["".join(rng.choices("abcdefgh", k=4)) for _ in range(length)]
    return f"The {' '.join(words)}."


def made_up(modules: int = 12, docstrings: int = 2) -> list[Passage]:
    """For each library some modules, each with docstrings of three sentences of random words."""
    rng = random.Random(7)
    return [
        Passage(library, f"{library}/m{number}.py", tuple(sentence(rng) for _ in range(3)))
        for library in LIBRARIES
        for number in range(modules)
        for _ in range(docstrings)
    ]


def eights(text: str) -> set[tuple[str, ...]]:
    """Every eight words in a row."""
    found = re.findall(r"\w+", text.lower())
    return {tuple(found[start : start + 8]) for start in range(len(found) - 7)}


@pytest.fixture
def corpus():
    return passages.build(made_up(), SIZES)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Return a NumPy array.", "Return a library array."),
        ("Use np.array or tf.data.Dataset.", "Use library or library."),
        ("As in scikit-learn, sklearn.base and sklearn2.", "As in library, library and library."),
        ("In TF2 and TF 1.x, tf_keras.", "In library and library 1.x, library."),
        ("Call plt.plot, pyplot or mpl_toolkits.", "Call library, library or library."),
        ("A PythonOp of the pandas API.", "A library of the library API."),
        *[(text, text) for text in ("Examples of tfidf.", "A DataFrame, a Tensor, its Axes.")],
    ],
)
def test_names_that_give_the_library_away_are_masked(text, masked):
    assert passages.mask_names(text) == masked


def test_every_split_has_its_size_and_every_class_its_share(corpus):
    assert list(corpus.splits) == ["train", "dev", "test"]
    for split, examples in corpus.splits.items():
        counts = Counter(example.label for example in examples)
        assert counts == dict.fromkeys(LIBRARIES, SIZES[split])


def test_a_module_is_in_one_split_only_and_the_prose_has_none_of_dev_and_test(corpus):
    splits = corpus.splits.items()
    modules = {split: {example.module for example in examples} for split, examples in splits}
    assert sum(map(len, modules.values())) == len(set().union(*modules.values()))
    found = made_up()
    held_out = {
        line
        for passage in found
        for line in passage.sentences
        if passage.module in modules["dev"] | modules["test"]
    }
    prose = {line for document in corpus.documents for line in document}
    assert prose and not prose & held_out
    assert prose | held_out == {line for passage in found for line in passage.sentences}


def test_text_copied_from_module_to_module_is_in_one_place_only():
    rng = random.Random(3)
    copied = sentence(rng, 20)
    short = "The bag is closed."
    changed = copied.replace(copied.split()[-1], "now.")
    found = made_up()
    for number in range(0, len(found), 2):  # the first of two docstrings of a module gets a copy
        passage = found[number]
        copy = (copied, changed.upper(), short)[number // 2 % 3]
        lines = (passage.sentences[0], copy, passage.sentences[1])
        found[number] = dataclasses.replace(passage, sentences=lines)
    corpus = passages.build(found, {"train": 2, "dev": 2, "test": 2})
    examples = [example.text for split in corpus.splits.values() for example in split]
    held_out = [example.text for split in ("dev", "test") for example in corpus.splits[split]]
    for text in (short, copied):
        # The text must be in dev or test once; otherwise the next checks would prove nothing.
        assert sum(text.lower() in example.lower() for example in held_out) == 1
    assert sum(short in example for example in examples) == 1
    assert sum(bool(eights(copied) & eights(example)) for example in examples) == 1
    shared = set().union(*map(eights, held_out))
    assert not any(short in document for document in corpus.documents)
    assert not any(eights(line) & shared for document in corpus.documents for line in document)


def test_no_module_speaks_for_its_library():
    corpus = passages.build(made_up(modules=9, docstrings=40), {"train": 30, "dev": 15, "test": 15})
    examples = [example for split in corpus.splits.values() for example in split]
    modules = [example.module for example in examples]
    assert max(map(modules.count, modules)) == passages.MOST_PER_MODULE


def test_a_passage_is_long_enough_to_tell_and_short_enough_to_read():
    found = [
        Passage("vans", f"vans/{number}.py", (sentence(random.Random(number), length),) * 4)
        for number, length in enumerate([3, 9, 40, 45])
    ]
    corpus = passages.build(found, {"train": 1, "dev": 1, "test": 1})
    lengths = sorted(
        len(example.text.split()) for examples in corpus.splits.values() for example in examples
    )
    assert lengths == [40, 41, 46]


def test_the_draw_depends_on_names_and_words_but_not_on_the_order_of_the_files(corpus):
    backwards = sorted(made_up(), key=lambda passage: passage.module, reverse=True)
    other = passages.build(backwards, SIZES)
    assert all(set(corpus.splits[split]) == set(other.splits[split]) for split in SIZES)
    assert passages.build(made_up(), SIZES) == corpus


def test_a_library_with_too_little_text_is_named_in_one_line():
    with pytest.raises(UserError, match="the sources of letters hold too little text") as raised:
        passages.build(made_up(modules=3), SIZES)
    assert "\n" not in str(raised.value)


def test_a_sentence_stands_once_in_the_prose_and_a_lone_one_is_no_document():
    lone = Passage("vans", "vans/lone.py", ("The van is here.",))
    twice = Passage(
        "vans", "vans/twice.py", ("The van is here.", "It is red.", "It is red.", "Go.")
    )
    corpus = passages.build([lone, twice], {"train": 0, "dev": 0, "test": 0})
    assert corpus.documents == [["It is red.", "Go."]]


def test_the_files_are_tables_and_prose_with_blank_lines(corpus, tmp_path):
    passages.write(corpus, tmp_path)
    written = {"dev.tsv", "prose.txt", "test.tsv", "train.tsv"}
    assert {file.name for file in tmp_path.iterdir()} == written
    for split, examples in corpus.splits.items():
        header, *rows = (tmp_path / f"{split}.tsv").read_text("utf-8").splitlines()
        assert header == "text\tlabel"
        assert [tuple(row.split("\t")) for row in rows] == [(e.text, e.label) for e in examples]
    documents = (tmp_path / "prose.txt").read_text("utf-8").split("\n\n")
    assert [document.splitlines() for document in documents] == corpus.documents
