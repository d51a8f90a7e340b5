"""The demo's two data sets: unlabelled prose, and passages labelled with their library.

The question is: which library is this passage from? Names that give the answer away are masked.
Everything a module (a source file) says goes to one split only, and what is said in dev or test is
kept out of the prose for pre-training, so that the figures on test are of text never met before.
The draw is by hash of the names and words, so that it is the same on every machine and in every
process.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bert_tf.programs.demo.docstrings import Passage
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text

# Examples of one class: 900 a split with the demo's six classes. So few labels do not teach
# what all the words mean, which is what pre-training is for; an accuracy on 900 has a standard
# error of 1.6 points.
SIZES = {"train": 150, "dev": 150, "test": 150}
# No file may speak for its whole library.
MOST_PER_MODULE = 16
# Words of a passage.
MIN_WORDS, MAX_WORDS = 20, 50
# So many words in a row in two places are a copy, not chance.
_RUN = 8

# An ordinary word, that the sentence stays one: "[MASK]" has a meaning of its own in BERT.
MASK = "library"
_TOKEN = re.compile(r"\w+(?:\.\w+)*(?:-learn\b)?")
_NAME = re.compile(
    # Names of the libraries wherever they occur, as in `PythonOp` or `sklearn.base`, ...
    r"python|numpy|scipy|scikit|sklearn|pandas|matplotlib|pyplot|pylab|tensorflow|tensorboard"
    r"|keras|ndimage|mplot3d"
    # ... and, as a whole part of a dotted name, the aliases everyone imports them under.
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
class Corpus:
    """The demo's data.

    Attributes:
        splits: "train", "dev" and "test" -> examples, every class equally often.
        documents: the prose for pre-training: per module its sentences, none twice.
    """

    splits: dict[str, list[Example]]
    documents: list[list[str]]


def build(passages: Sequence[Passage], sizes: dict[str, int] | None = None) -> Corpus:
    """Draws the labelled examples and leaves the rest as prose.

    No two examples share a sentence or eight words in a row, whatever their split and class, and
    no sentence of the prose shares them with dev or test.

    Args:
        passages: what `docstrings.harvest` found.
        sizes: examples per class in "train", "dev" and "test"; `SIZES` if not given.

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
    held_out_modules: set[str] = set()
    held_out_runs: set[str] = set()
    used_runs: set[str] = set()
    for split in ("test", "dev", "train"):
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
                module = modules.pop(0)
                number = min(MOST_PER_MODULE, sizes[split] - len(drawn))
                drawn.extend(_draw(by_module[library][module], number, used_runs))
                if split != "train":
                    held_out_modules.add(module)
            splits[split].extend(drawn)
        if split != "train":
            held_out_runs = set(used_runs)
    for examples in splits.values():
        examples.sort(key=lambda example: _hash(example.text))
    free = [passage for passage in passages if passage.module not in held_out_modules]
    return Corpus(
        splits={split: splits[split] for split in ("train", "dev", "test")},
        documents=list(_documents(free, held_out_runs)),
    )


def mask_names(text: str) -> str:
    """Puts the word "library" in place of every word that names one of the libraries.

    A dotted name or an identifier goes as a whole (`np.ndarray`, `tf.data.Dataset`). What is
    content stays even if it is typical: `DataFrame`, `Tensor`, `Axes`, `estimator`.
    """
    return _TOKEN.sub(lambda token: MASK if _NAME.search(token[0]) else token[0], text)


def write(corpus: Corpus, folder: Path) -> dict:
    """Writes `train.tsv`, `dev.tsv`, `test.tsv`, `prose.txt` and `manifest.json` to a folder.

    The TSV files have the header `text<TAB>label`; the prose has one sentence a line and a blank
    line between documents, as google-research/bert's create_pretraining_data.py reads it.

    Returns:
        The manifest: sizes of the prose, examples per class and the share of the largest class.
    """
    manifest: dict = {
        "prose": {
            "documents": len(corpus.documents),
            "sentences": sum(map(len, corpus.documents)),
            "words": sum(len(s.split()) for document in corpus.documents for s in document),
        },
        "splits": {},
    }
    for split, examples in corpus.splits.items():
        lines = ["text\tlabel", *(f"{example.text}\t{example.label}" for example in examples)]
        write_text(folder / f"{split}.tsv", "\n".join(lines) + "\n")
        classes = Counter(example.label for example in examples)
        manifest["splits"][split] = {
            "examples": len(examples),
            "modules": len({example.module for example in examples}),
            "classes": dict(sorted(classes.items())),
            "majority_share": max(classes.values()) / len(examples),
        }
    prose = "\n\n".join("\n".join(document) for document in corpus.documents) + "\n"
    manifest["prose"]["bytes"] = len(prose.encode())
    write_text(folder / "prose.txt", prose)
    write_text(folder / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    return manifest


def _draw(passages: Sequence[Passage], count: int, used_runs: set[str]) -> Iterator[Example]:
    """Up to `count` examples, one per docstring, that share no run of words with earlier ones."""
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
    excerpt: list[str] = []
    words = 0
    for sentence in sentences:
        length = len(sentence.split())
        if words + length > MAX_WORDS:
            break
        excerpt.append(sentence)
        words += length
    return excerpt if words >= MIN_WORDS else []


def _documents(passages: Sequence[Passage], held_out_runs: set[str]) -> Iterator[list[str]]:
    """The prose of each module, without sentences met before and without held-out text."""
    modules: dict[str, list[str]] = {}
    seen: set[str] = set()
    for passage in passages:
        document = modules.setdefault(passage.module, [])
        for sentence in passage.sentences:
            if sentence not in seen:
                seen.add(sentence)
                if held_out_runs.isdisjoint(_runs(sentence)):
                    document.append(sentence)
    # A document of one sentence holds no pair of sentences.
    return (document for document in modules.values() if len(document) > 1)


def _runs(sentence: str) -> Iterator[str]:
    """Every eight words in a row, in lower case and without punctuation; a short sentence whole."""
    words = re.findall(r"[^\W_]+", mask_names(sentence).lower())
    for start in range(max(1, len(words) - _RUN + 1)):
        yield " ".join(words[start : start + _RUN])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
