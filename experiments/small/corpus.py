"""Writes novels and WikiText as one corpus, a sentence a line, a blank line between documents.

    python -m experiments.small.corpus --novels novels --wikitext wikitext2/train.txt \\
        --out corpus.txt

An article is one document; a novel is cut into documents of the size of a chapter, so that some of
each are held out, and the book alone does not show which sentence is the next. Words that WikiText
has replaced by <unk> are left out.
"""

import argparse
import itertools
import sys
from pathlib import Path

from bert_tf.cli import command
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.io.atomic import atomic_path

# Sentences in a chapter.
_CHAPTER = 200


def main() -> int:
    """Writes the corpus; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("experiments.small.corpus", __doc__)
    parser.add_argument("--novels", required=True, metavar="DIR", help="text files, one a novel")
    parser.add_argument("--wikitext", nargs="+", default=[], metavar="FILE", help="as it comes")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")

    def work(arguments: argparse.Namespace) -> None:
        write(arguments.novels, arguments.wikitext, arguments.out)

    return command.run("corpus", parser, None, work, "stopped; nothing was written")


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
