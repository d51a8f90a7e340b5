"""Learning a WordPiece vocabulary from text.

Three steps on the counts of the distinct words: choose the characters (`character_pieces`), grow
pieces by merging pairs (`pair_merging`) to a quarter more than requested, and drop those that the
greedy longest-match tokenizer gains least from. To extend a vocabulary, words start as its pieces.

benchmarks/vocabulary.py compares this with ready-made trainers: tensorflow-text's takes ten times
as long, and Hugging Face's numbers the pieces differently on every run.
"""

import dataclasses
import math
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import accumulate, islice

from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.io.files import first_of
from bert_tf.io.remote import fetched
from bert_tf.io.vocabulary import SPECIAL_TOKENS, TokenizerSettings, file_text
from bert_tf.text.cleaning import MAX_WORD_CHARACTERS
from bert_tf.text.pair_merging import CONTINUATION, merged_pieces
from bert_tf.text.tokenizer import Tokenizer
from bert_tf.text.word_counts import UNSPELLABLE, OnProgress, count_words, count_words_of_texts

# Pieces grown for every piece kept. With more, the vocabulary fits other text worse.
_SURPLUS = 1.25
# The share of the vocabulary that characters may take. The characters needed to spell 99% of the
# words may take all of it, those up to 99.95% three quarters, and rarer ones a quarter.
_ALL_OF_IT = 0.99
_SHARES = ((_ALL_OF_IT, 1), (0.9995, 3 / 4), (1, 1 / 4))


@dataclasses.dataclass(frozen=True)
class LearnedVocabulary:
    """A vocabulary, and how well it covers the text that it was learned from."""

    pieces: tuple[str, ...]
    size: int  # the requested number of pieces
    words: int  # of the text, punctuation marks among them
    distinct_words: int
    unknown_words: int  # how many of `words` are [UNK]
    word_pieces: int  # how many pieces `words` are cut into, [UNK] counting as one
    characters: int  # of `words`, leaving out words over 200 characters long
    characters_left_out: tuple[tuple[str, int], ...]  # without a piece, and how often they occur
    before: "LearnedVocabulary | None" = None  # the extended vocabulary, on the same text

    @property
    def pieces_per_word(self) -> float:
        """How many pieces a word of the text is cut into on average."""
        return self.word_pieces / self.words

    @property
    def character_coverage(self) -> float:
        """The share of the text's characters that have a piece, 0 to 1."""
        return 1 - sum(count for _, count in self.characters_left_out) / self.characters

    def write(self, path: str | os.PathLike) -> None:
        """Writes the vocabulary file, one piece a line."""
        write_text(path, file_text(self.pieces))


def learn_vocabulary(
    files: Sequence[str | os.PathLike],
    size: int,
    lower_case: bool = True,
    progress: OnProgress | None = None,
    tokenizer: Tokenizer | None = None,
) -> LearnedVocabulary:
    """Learns a vocabulary of `size` pieces from text files; the same text gives the same pieces.

    Memory grows with the number of distinct words, not with the size of the files.

    >>> from pathlib import Path
    >>> _ = Path("corpus.txt").write_text("The cat sat. The cats sat.")
    >>> learned = learn_vocabulary(["corpus.txt"], size=22)
    >>> learned.pieces[-4:]  # after the special tokens and the characters
    ('##at', 'cat', 'sat', 'the')

    Args:
        files: UTF-8 text, plain or gzipped.
        size: pieces in all, the five special tokens among them.
        lower_case: as for the `Tokenizer` that will use the vocabulary.
        progress: called regularly with a description, the amount done and the total amount.
        tokenizer: one whose vocabulary is extended to `size` pieces, and whose settings count
            instead of `lower_case`; None learns a new vocabulary.

    Raises:
        UserError: a file is missing, empty, broken or not UTF-8; there are no words; `size` has no
            room for the special tokens, or the old pieces, and the characters.
    """
    if not files:
        raise UserError("no text files to learn a vocabulary from; name at least one")
    settings = TokenizerSettings(lower_case) if tokenizer is None else tokenizer.settings
    counts = count_words([fetched(file, is_file=True) for file in files], settings, progress)
    return _learned(counts, first_of(files), size, progress, tokenizer)


def learn_from_texts(
    texts: Iterable[str],
    size: int,
    lower_case: bool = True,
    progress: OnProgress | None = None,
    tokenizer: Tokenizer | None = None,
) -> LearnedVocabulary:
    """As `learn_vocabulary`, from texts; `progress` is not called while their words are counted."""
    settings = TokenizerSettings(lower_case) if tokenizer is None else tokenizer.settings
    counts = count_words_of_texts(texts, settings)
    return _learned(counts, "the texts", size, progress, tokenizer)


def _learned(
    counts: Counter[str],
    source: str,
    size: int,
    progress: OnProgress | None,
    tokenizer: Tokenizer | None,
) -> LearnedVocabulary:
    """The vocabulary of the words of `source`, from their counts."""
    unspellable = counts.pop(UNSPELLABLE, 0)
    if not counts:
        raise UserError(f"no words to learn a vocabulary from in {source}")
    old = SPECIAL_TOKENS if tokenizer is None else tokenizer.vocabulary
    if tokenizer is not None and size <= len(old):
        raise UserError(
            f"vocabulary size {size} is too small: the vocabulary to extend has {len(old)} pieces "
            "already; choose a larger size"
        )
    characters = character_pieces(counts, size, old)
    known = {*old, *characters}
    if tokenizer is not None:
        known -= {*tokenizer.settings.added_tokens}  # no word is cut into these
    cuts = {word: pieces for word in counts if (pieces := cut(word, known))}
    spelled = {word: counts[word] for word in cuts}
    room = size - len(old) - len(characters)
    surplus = math.ceil(room * _SURPLUS)
    grown = []
    for piece in islice(merged_pieces(spelled, [*cuts.values()]), surplus):
        grown.append(piece)
        if progress is not None and len(grown) % 100 == 0:
            progress("growing pieces", len(grown), surplus)
    longer = _most_useful(grown, room, known, spelled)
    learned = _measured((*old, *characters, *longer), size, counts, unspellable)
    before = None if tokenizer is None else _measured(old, size, counts, unspellable)
    return dataclasses.replace(learned, before=before)


def character_pieces(
    word_counts: Mapping[str, int], size: int, old: Sequence[str] = SPECIAL_TOKENS
) -> tuple[str, ...]:
    """The one-character pieces: first those that begin a word, then those that continue one.

    Rare characters must leave room for longer pieces. A character that always stands alone, like
    punctuation and CJK ideographs, needs only the first piece. Pieces in `old` are left out.
    """
    occurrences: Counter[str] = Counter()
    joined: set[str] = set()
    for word, count in word_counts.items():
        for character in word:
            occurrences[character] += count
        if len(word) > 1:
            joined.update(word)
    ranked = sorted(occurrences, key=lambda character: (-occurrences[character], character))
    known = {*old}

    def new_pieces(character: str) -> list[str]:
        pieces = [character, CONTINUATION + character] if character in joined else [character]
        return [piece for piece in pieces if piece not in known]

    costs = [len(new_pieces(character)) for character in ranked]
    # How many words the first of the ranked characters spell, the first two, and so on.
    rank = {character: number for number, character in enumerate(ranked)}
    spelled_from = [0] * len(ranked)
    for word, count in word_counts.items():
        spelled_from[max(rank[character] for character in word)] += count
    spelled = list(accumulate(spelled_from))

    def needed(share_of_words: float) -> int:
        return bisect_left(spelled, share_of_words * spelled[-1]) + 1

    smallest = len(old) + sum(costs[: needed(_ALL_OF_IT)])
    is_new = len(old) == len(SPECIAL_TOKENS)
    if size < smallest:
        raise UserError(
            f"vocabulary size {size} is too small: the {len(old)} "
            f"{'special tokens' if is_new else 'old pieces'} and the characters of this text need "
            f"{smallest}; choose that size or more"
        )
    kept = 0
    taken = len(old)
    before = 0 if is_new else len(old)
    for share_of_words, share_of_size in _SHARES:
        most = needed(share_of_words)
        while kept < most and taken + costs[kept] <= before + share_of_size * (size - before):
            taken += costs[kept]
            kept += 1
    pieces = [piece for character in sorted(ranked[:kept]) for piece in new_pieces(character)]
    return tuple(sorted(pieces, key=lambda piece: len(piece) > 1))


def coverage_report(vocabulary: LearnedVocabulary) -> str:
    """A summary of a new vocabulary for the user, as lines of text.

    >>> print(coverage_report(learn_from_texts(["the cat", "the cats"], size=19)), end="")
    pieces           19: 5 special tokens, 12 characters, 2 longer
    words            4, of them 3 distinct
    pieces per word  1.750
    [UNK]            0 words, 0.0000%
    characters       13, 100.0000% of them covered
    left out         0 different characters
    """
    pieces = [piece for piece in vocabulary.pieces if piece not in SPECIAL_TOKENS]
    single = [piece for piece in pieces if len(piece.removeprefix(CONTINUATION)) == 1]
    left_out = vocabulary.characters_left_out
    lines = [
        f"pieces           {len(vocabulary.pieces):,}: {len(SPECIAL_TOKENS)} special tokens, "
        f"{len(single):,} characters, {len(pieces) - len(single):,} longer",
        f"words            {vocabulary.words:,}, of them {vocabulary.distinct_words:,} distinct",
        f"pieces per word  {vocabulary.pieces_per_word:.3f}",
        f"[UNK]            {vocabulary.unknown_words:,} words, "
        f"{vocabulary.unknown_words / vocabulary.words:.4%}",
        f"characters       {vocabulary.characters:,}, "
        f"{vocabulary.character_coverage:.4%} of them covered",
        f"left out         {len(left_out):,} different characters"
        + (", most often " if left_out else "")
        + ", ".join(f"{_shown(character)} ({count:,})" for character, count in left_out[:10]),
    ]
    if (old := vocabulary.before) is not None:
        lines.append(
            f"before           {len(old.pieces):,} pieces, {old.pieces_per_word:.3f} per word, "
            f"{old.unknown_words:,} words [UNK]"
        )
    if len(vocabulary.pieces) < vocabulary.size:
        lines.append(
            f"the vocabulary has fewer than {vocabulary.size:,} pieces, since no other pair of "
            "pieces occurs twice in the text; give more text, or choose a smaller size"
        )
    return "\n".join(lines) + "\n"


def _most_useful(
    grown: Sequence[str], room: int, known: Set[str], counts: Mapping[str, int]
) -> list[str]:
    """The `room` pieces of `grown` that save the tokenizer most pieces, in the order of `grown`."""
    vocabulary = {*known, *grown}
    uses: Counter[str] = Counter()
    for word, count in counts.items():
        for piece in cut(word, vocabulary):
            uses[piece] += count

    def saving(piece: str) -> int:
        shorter = len(piece.removeprefix(CONTINUATION)) - 1
        return uses[piece] * (len(cut(piece, vocabulary, shorter)) - 1)

    best = set(sorted(grown, key=saving, reverse=True)[:room])
    return [piece for piece in grown if piece in best]


def cut(word: str, vocabulary: Set[str], longest: int = MAX_WORD_CHARACTERS) -> list[str]:
    """`word`, or a "##" piece, as the reference's WordpieceTokenizer cuts it; [] means [UNK]."""
    pieces = []
    mark = CONTINUATION if word.startswith(CONTINUATION) else ""
    word = word.removeprefix(mark)
    start = 0
    while start < len(word):
        for end in range(min(len(word), start + longest), start, -1):
            piece = mark + word[start:end]
            if piece in vocabulary:
                break
        else:
            return []
        pieces.append(piece)
        start = end
        mark = CONTINUATION
    return pieces


def _measured(
    pieces: tuple[str, ...], size: int, counts: Mapping[str, int], unspellable: int
) -> LearnedVocabulary:
    vocabulary = frozenset(pieces)
    unknown_words = word_pieces = unspellable
    left_out: Counter[str] = Counter()
    for word, count in counts.items():
        number = len(cut(word, vocabulary))
        unknown_words += 0 if number else count
        word_pieces += (number or 1) * count
        for character in word:
            if character not in vocabulary:
                left_out[character] += count
    return LearnedVocabulary(
        pieces=pieces,
        size=size,
        words=sum(counts.values()) + unspellable,
        distinct_words=len(counts),
        unknown_words=unknown_words,
        word_pieces=word_pieces,
        characters=sum(len(word) * count for word, count in counts.items()),
        characters_left_out=tuple(sorted(left_out.items(), key=lambda item: (-item[1], item[0]))),
    )


def _shown(character: str) -> str:
    """A character as a report can show it: its number too, for fonts that lack it."""
    number = f"U+{ord(character):04X}"
    return f"{character} {number}" if character.isprintable() else number
