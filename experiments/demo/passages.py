"""The demo's two data sets: unlabelled prose, and passages labelled with their library.

Names that give away the library of a passage are masked. All passages of a module (a source file)
are in one split, and the text of dev and test is left out of the prose, so the test passages are
new to the model. The draw is by hash of the names and words, so it is the same on every machine.
"""

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bert_tf.errors import UserError
from bert_tf.experiments.demo.docstrings import Passage
from bert_tf.io.atomic import write_text

# Examples of each class: 900 in a split of the demo's six classes. So few labels do not teach the
# meaning of all words, which shows what pre-training brings. An accuracy on 900 examples has a
# standard error of 1.6 points.
SIZES = {"train": 150, "dev": 150, "test": 150}
# So that no file dominates the passages of its library.
MOST_PER_MODULE = 16
PROSE = "prose.txt"
# The number of words of a passage.
MIN_WORDS, MAX_WORDS = 20, 50
# If two places share this many words in a row, one is a copy of the other.
_RUN = 8

# An ordinary word, so that a sentence remains a sentence; "[MASK]" has its own meaning in BERT.
MASK = "library"
_TOKEN = re.compile(r"\w+(?:\.\w+)*(?:-learn\b)?")
_NAME = re.compile(
    # Names of the libraries, also inside of words, as in `PythonOp` or `sklearn.base`, ...
    r"python|numpy|scipy|scikit|sklearn|pandas|matplotlib|pyplot|pylab|tensorflow|tensorboard"
    r"|keras|ndimage|mplot3d"
    # ... and their usual aliases as a whole part of a dotted name.
    r"|(?:^|[._])(?:np|pd|plt|mpl|tf|tflite|tfdbg)(?=$|[._\d])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Example:
    """One labelled passage: its text with names masked, the library it is from, its module."""

    text: str
    label: str
    module: str


@dataclass(frozen=True)
class PassageSets:
    """The demo's data: examples, every class equally often, and the prose for pre-training."""

    splits: dict[str, list[Example]]  # "train", "dev" and "test"
    documents: list[list[str]]  # the sentences of each module, without repetitions


def build(passages: Sequence[Passage], sizes: dict[str, int] | None = None) -> PassageSets:
    """Draws the labelled examples; the rest is the prose.

    No two examples of any split share a sentence or eight words in a row, and no sentence of the
    prose shares them with dev or test. `sizes` are those of each class in the splits, or else
    `SIZES`.

    Raises:
        UserError: there is no text, or a library has too little.
    """
    sizes = SIZES if sizes is None else sizes
    if not passages:
        raise UserError(
            "the installed libraries have no documentation strings; the demo requires their .py "
            "files, with documentation strings in them"
        )
    by_module: dict[str, dict[str, list[Passage]]] = {}
    for passage in passages:
        by_module.setdefault(passage.library, {}).setdefault(passage.module, []).append(passage)
    waiting = {library: sorted(found, key=_hash) for library, found in by_module.items()}

    splits: dict[str, list[Example]] = {}
    used_runs: set[str] = set()
    for split in ("test", "dev", "train"):
        if split == "train":
            not_held_out = {module for modules in waiting.values() for module in modules}
            held_out_runs = set(used_runs)
        splits[split] = []
        for library, modules in waiting.items():
            drawn: list[Example] = []
            while len(drawn) < sizes[split]:
                if not modules:
                    raise UserError(
                        f"the sources of {library} hold too little text for the demo: "
                        f"{len(drawn)} of {sizes[split]} passages for {split}; "
                        "install it with its .py files and their documentation strings"
                    )
                number = min(MOST_PER_MODULE, sizes[split] - len(drawn))
                drawn.extend(_draw(by_module[library][modules.pop(0)], number, used_runs))
            splits[split].extend(drawn)
        splits[split].sort(key=lambda example: _hash(example.text))
    free = [passage for passage in passages if passage.module in not_held_out]
    return PassageSets(
        splits={split: splits[split] for split in ("train", "dev", "test")},
        documents=list(_documents(free, held_out_runs)),
    )


def mask_names(text: str) -> str:
    """Replaces every word that names one of the libraries by the word "library".

    A dotted name or an identifier is replaced as a whole (`np.ndarray`, `tf.data.Dataset`). Other
    words stay even if they are typical of a library: `DataFrame`, `Tensor`, `Axes`, `estimator`.
    """
    return _TOKEN.sub(lambda token: MASK if _NAME.search(token[0]) else token[0], text)


def write(corpus: PassageSets, folder: Path) -> None:
    """Writes `train.tsv`, `dev.tsv`, `test.tsv` and at last `prose.txt` to a folder.

    The TSV files have the header `text<TAB>label`; the prose has one sentence a line and a blank
    line between documents, as google-research/bert's create_pretraining_data.py reads it.
    """
    for split, examples in corpus.splits.items():
        lines = ["text\tlabel", *(f"{example.text}\t{example.label}" for example in examples)]
        write_text(folder / f"{split}.tsv", "\n".join(lines) + "\n")
    documents = ("\n".join(document) for document in corpus.documents)
    write_text(folder / PROSE, "\n\n".join(documents) + "\n")


def _draw(passages: Sequence[Passage], count: int, used_runs: set[str]) -> Iterator[Example]:
    """At most `count` examples, one per docstring; they share no run of words with earlier ones."""
    for passage in sorted(passages, key=lambda passage: _hash(" ".join(passage.sentences))):
        if count == 0:
            return
        sentences = _excerpt(passage.sentences)
        runs = {run for sentence in sentences for run in _runs(sentence)}
        if sentences and used_runs.isdisjoint(runs):
            used_runs |= runs
            count -= 1
            yield Example(mask_names(" ".join(sentences)), passage.library, passage.module)


def _excerpt(sentences: Sequence[str]) -> list[str]:
    """The first sentences, as many as fit; none if they are too short to be informative."""
    words = list(itertools.accumulate(len(sentence.split()) for sentence in sentences))
    fitting = sum(count <= MAX_WORDS for count in words)
    return list(sentences[:fitting]) if fitting and words[fitting - 1] >= MIN_WORDS else []


def _documents(passages: Sequence[Passage], held_out_runs: set[str]) -> Iterator[list[str]]:
    """The prose of each module, without repeated sentences and without held-out text."""
    modules: dict[str, list[str]] = {}
    seen: set[str] = set()
    for passage in passages:
        document = modules.setdefault(passage.module, [])
        for sentence in passage.sentences:
            if sentence not in seen:
                seen.add(sentence)
                if held_out_runs.isdisjoint(_runs(sentence)):
                    document.append(sentence)
    # A document of one sentence has no pair of sentences.
    return (document for document in modules.values() if len(document) > 1)


def _runs(sentence: str) -> Iterator[str]:
    """Every eight words in a row, in lower case without punctuation; of a short sentence all."""
    words = re.findall(r"[^\W_]+", mask_names(sentence).lower())
    for start in range(max(1, len(words) - _RUN + 1)):
        yield " ".join(words[start : start + _RUN])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
