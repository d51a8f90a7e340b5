"""Writes novels and WikiText as one corpus, a sentence a line, a blank line between documents.

    python -m bert_tf.experiments.small.corpus --novels novels --wikitext wikitext2/train.txt \\
        --out corpus.txt

An article is one document; a novel is cut into documents of the size of a chapter, so that some of
each are held out, and the book alone does not show which sentence is the next. Words that WikiText
has replaced by <unk> are left out.
"""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf.cli.command import option
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.experiments import program
from bert_tf.io.atomic import atomic_path

# Sentences in a chapter.
_CHAPTER = 200


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the corpus; returns the exit code, see `bert_tf.cli.command`."""
    return program(
        "small.corpus",
        __doc__,
        argv,
        write,
        option("--novels DIR", "folder of text files, one per novel", required=True),
        option("--wikitext FILE", "WikiText files, unchanged", nargs="+", default=[]),
        option("--out FILE", "the file to write", type=Path, required=True),
    )


def write(novels: str, wikitext: list[str], out: Path) -> None:
    """Writes all documents to the file `out`, which appears when it is whole."""
    books = Corpus(novels, "document_per_file")
    chapters = (
        book[first : first + _CHAPTER] for book in books for first in range(0, len(book), _CHAPTER)
    )
    articles = Corpus(wikitext, "wikitext") if wikitext else ()
    with atomic_path(out) as new, open(new, "w", encoding="utf-8") as file:
        for document in itertools.chain(chapters, articles):
            sentences = (sentence.replace("<unk>", "").strip() for sentence in document)
            file.write("".join(f"{each}\n" for each in sentences if each) + "\n")


if __name__ == "__main__":
    sys.exit(main())
