"""`bert-tf vocab`: learns a vocabulary, or pieces of a domain to extend that of a checkpoint."""

import os
from collections.abc import Iterator, Sequence

from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.growth import with_pieces
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.io.vocabulary import ids_of
from bert_tf.tasks import from_checkpoint
from bert_tf.text import Tokenizer
from bert_tf.text.vocabulary_learning import (
    LearnedVocabulary,
    cut,
    learn_from_texts,
    learn_vocabulary,
)
from bert_tf.text.word_counts import OnProgress


def extend(
    checkpoint: str | os.PathLike,
    files: Sequence[str | os.PathLike],
    size: int,
    out: str | os.PathLike,
    format: str | None = None,
    progress: OnProgress | None = None,
) -> LearnedVocabulary:
    """Writes a checkpoint whose vocabulary has further pieces, learned from text of a domain.

    New pieces follow the old, which keep their ids and rows, `[unused1]` and the like among them.
    The row of a new piece is the mean of the rows of the old pieces that it was cut into, or that
    of [UNK]. Casing and the other settings of the tokenizer are the checkpoint's.

    Args:
        checkpoint: a `.keras` file, or what `from_checkpoint` opens.
        files, format, progress: as for `learned`.
        size: pieces of the whole vocabulary, the old ones among them.
        out: the new folder, of the checkpoint's format. A run or a `.keras` file gives a checkpoint
            of bert_tf.

    Raises:
        UserError: as `learn_vocabulary`; the checkpoint has no vocabulary, or `out` exists already.
    """
    conversion.check_new(out)
    opened = from_checkpoint.find(checkpoint)
    old = Tokenizer.from_checkpoint(opened)
    found = learned(files, size, old.lower_case, format, progress, old)
    new = Tokenizer.of(found.pieces, old.settings)
    ids = ids_of(old.vocabulary)
    known = ids.keys() - old.settings.added_tokens
    pieces = (cut(piece, known) for piece in new.vocabulary[old.vocab_size :])
    rows = [[ids[piece] for piece in each] or [old.unk_id] for each in pieces]
    grown = with_pieces(opened, old.vocab_size, new, rows)
    conversion.convert(checkpoint, out, grown.table.format, lambda _: grown)
    return found


def learned(
    files: Sequence[str | os.PathLike],
    size: int,
    lower_case: bool = True,
    format: str | None = None,
    progress: OnProgress | None = None,
    tokenizer: Tokenizer | None = None,
) -> LearnedVocabulary:
    """As `learn_vocabulary`; the files are plain text, or a corpus of the named format."""
    if format is None:
        return learn_vocabulary(files, size, lower_case, progress, tokenizer)
    texts = _texts(Corpus([str(file) for file in files], format), progress or (lambda *_: None))
    return learn_from_texts(texts, size, lower_case, progress, tokenizer)


def _texts(corpus: Corpus, progress: OnProgress) -> Iterator[str]:
    """Each document as one text, one sentence per line; reports how much of the corpus is done."""
    for document in corpus:
        progress("counting words", corpus.position, corpus.size)
        yield "\n".join(document)
    progress("counting words", corpus.size, corpus.size)
