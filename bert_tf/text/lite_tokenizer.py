"""The tokenizer for LiteRT: built-in ops and tf-text's custom ops only, with `Tokenizer`'s ids.

Two rules of `Tokenizer` are left out, since they would require joining strings. Combining marks
that cleaning does not drop stay in the order of the text. And a capital sigma becomes ς only before
the end of a word.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.io.vocabulary import SPECIAL_TOKENS, UNK, ids_of
from bert_tf.text import characters
from bert_tf.text.normalizer_model import Normalized, normalize, normalizer_model
from bert_tf.text.packing import Cut, Features, Preprocessor, head_of, kept
from bert_tf.text.rows import counts, owners, positions, ragged, splits_of
from bert_tf.text.tokenizer import Pieces, Tokenizer, wordpiece_model_of
from bert_tf.text.unicode_rules import rules_of
from bert_tf.text.windows import WindowPreprocessor

# What becomes of a character. One that stays is in a word, or else ends the word before it.
_ENDS_WORD, _IN_WORD, _DELETED, _ACCENT = range(4)
# The classes of characters in the rule of final sigmas, which skips those that are _PASSED.
_UNCASED, _CASED, _PASSED, _SIGMA = range(4)
# The kinds of characters in the order of their numbers, frequent ones first; 0 is no character. The
# end of a text has the first kind too.
_FREQUENT = (
    (_ENDS_WORD, _UNCASED),
    (_IN_WORD, _CASED),
    (_IN_WORD, _UNCASED),
    (_ENDS_WORD, _PASSED),
    (_ACCENT, _PASSED),
    (_DELETED, _PASSED),
)
_KINDS = tuple(dict.fromkeys((*_FREQUENT, *itertools.product(range(4), range(4)))))
_CAPITAL_SIGMA = "\u03a3"
_OPEN, _CLOSE = 1, 2  # pieces of `_special_models`; the special tokens come after them


class _FlatPieces(NamedTuple):
    """The pieces of some texts in one list, and the bytes of their texts: int32 [pieces]."""

    splits: tf.Tensor  # int32 [batch + 1], the first piece of each text
    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def _wordpiece(texts: tf.Tensor, model: np.ndarray) -> _FlatPieces:
    """Splits texts, string [batch], into pieces; `model` is from `wordpiece_model_of`."""
    import tensorflow_text as tf_text

    tokenizer = tf_text.FastWordpieceTokenizer(
        model_buffer=tf.constant(model), token_out_type=tf.int32
    )
    ids, *offsets = tokenizer.tokenize_with_offsets(texts)
    starts, ends = (tf.cast(each.values, tf.int32) for each in offsets)
    return _FlatPieces(tf.cast(ids.row_splits, tf.int32), ids.values, starts, ends)


class _ByteTraits:
    """The characters of texts by slots: all bytes end to end, and one slot for each text's end.

    LiteRT cannot decode strings. So a normalizer replaces every character by some spaces, and the
    number of these spaces is the kind of the character.
    """

    def __init__(self, texts: tf.Tensor, lower_case: bool, normalizer: str = "google"):
        found = normalize(texts, _traits_model(lower_case, normalizer))
        lengths = tf.gather(found.origins, found.splits[1:] - 1)
        self.first_slots = splits_of(lengths + 1)  # of each text, int32 [batch + 1]
        slots = found.origins + tf.gather(self.first_slots, owners(found.splits))
        self._kinds = counts(slots, self.first_slots[-1])

    def ends(self, slots: tf.Tensor) -> tf.Tensor:
        """The slot where the characters at `slots` end, with the accents that follow; int32."""
        is_kept = self._have(lambda fate, case: fate in (_ENDS_WORD, _IN_WORD))
        is_seen = self._have(lambda fate, case: fate != _DELETED)
        after = tf.gather(_next(is_kept), slots)
        last = tf.gather(positions(is_seen), tf.gather(_rank(is_seen), after) - 2)
        return tf.gather(_next(self._kinds > 0), last)

    def ends_in_sigma(self) -> tf.Tensor:
        """Where a capital sigma becomes ς, with the end of a word after it: bool [slots]."""
        # A sigma is final if it follows a cased letter and no cased letter follows it.
        counted = positions(self._have(lambda fate, case: case != _PASSED))
        cased = tf.gather(self._have(lambda fate, case: case in (_CASED, _SIGMA)), counted)
        cased = tf.cast(cased, tf.int32)
        before = tf.concat([[0], cased[:-1]], axis=0)
        after = tf.concat([cased[1:], [0]], axis=0)
        is_sigma = tf.gather(self._have(lambda fate, case: case == _SIGMA), counted)
        final = tf.gather(counted, positions(is_sigma & (before > after)))
        is_kept = self._have(lambda fate, case: fate in (_ENDS_WORD, _IN_WORD))
        ends_word = self._have(lambda fate, case: fate == _ENDS_WORD)
        word_ends = tf.gather(ends_word, tf.gather(_next(is_kept), final))
        final = tf.gather(final, positions(word_ends))
        return counts(final, self.first_slots[-1]) > 0

    def _have(self, trait: Callable[[int, int], bool]) -> tf.Tensor:
        """The slots where a character with this fate and case starts: bool."""
        return tf.gather([False, *(trait(*kind) for kind in _KINDS)], self._kinds)


def _rank(mask: tf.Tensor) -> tf.Tensor:
    """How many are True up to each position, this one included: int32."""
    return tf.cumsum(tf.cast(mask, tf.int32))


def _next(mask: tf.Tensor) -> tf.Tensor:
    """The next True after each position: int32 [n]; the last position, which has none, is True."""
    found = positions(mask)
    return tf.gather(found, tf.minimum(_rank(mask), tf.size(found) - 1))


@functools.cache
def _traits_model(lower_case: bool, normalizer: str) -> np.ndarray:
    """The normalizer that replaces each character by as many spaces as its number: uint8."""
    table = characters.cleaning_table(lower_case, normalizer=normalizer)
    found = table.unpacked()
    fate = np.where(table.first_kinds() == characters.IN_WORD, _IN_WORD, _ENDS_WORD)
    fate[found.length == 0] = _DELETED
    fate[found.has(characters.ACCENT)] = _ACCENT
    case = np.where(found.has(characters.CASED), _CASED, _UNCASED)
    case[found.has(characters.CASE_IGNORABLE) | (fate == _DELETED)] = _PASSED
    if lower_case:
        case[ord(_CAPITAL_SIGMA)] = _SIGMA
    spaces = {
        " " * number: np.flatnonzero((fate == kind[0]) & (case == kind[1]))
        for number, kind in enumerate(_KINDS, start=1)
    }
    return normalizer_model(spaces, broken=" " * (1 + _KINDS.index((_DELETED, _PASSED))))


class QuestionFeatures(NamedTuple):
    """The result of `LiteTokenizer.packed_question`, each int32 [1, max_length]."""

    features: Features
    starts: tf.Tensor  # the byte of the context where the token starts; -1 for other tokens
    ends: tf.Tensor


class LiteTokenizer:
    """Splits text into a `Tokenizer`'s pieces, in a function that converts to LiteRT.

    The interpreter must register `tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS`.
    """

    def __init__(self, tokenizer: Tokenizer):
        settings = tokenizer.settings
        lacking = {
            "strip_accents": settings.strips_accents != settings.lower_case,
            "split_chinese": not settings.split_chinese,
            "added_tokens": bool(settings.added_tokens),
            "exact_tokens": bool(settings.exact_tokens),
        }
        for setting, is_asked_for in lacking.items():
            if is_asked_for:
                raise UserError(
                    f"LiteRT lacks operations to read strings with {setting} of this tokenizer; "
                    "export a file that takes ids"
                )
        self.tokenizer = tokenizer
        vocabulary = tokenizer.vocabulary
        self._has_sigmas = (
            tokenizer.lower_case
            and rules_of(settings.normalizer).final_sigma
            and any(sigma in piece for piece in vocabulary for sigma in "σς")
        )
        self._sizes = np.array(
            [_size(piece, settings.longest_word + 1) for piece in vocabulary], np.int16
        )

    def tokenize_with_offsets(self, texts: tf.Tensor) -> Pieces:
        """The pieces of `texts`, string [batch]; see `Tokenizer.tokenize_with_offsets`."""
        splits, *values = self._pieces(texts, with_offsets=True)
        return Pieces(*(ragged(each, splits) for each in values))

    def packed(self, texts: Sequence[tf.Tensor], max_length: int, cut: Cut = "end") -> Features:
        """The encoder's inputs, int32 [1, max_length], for one text or pair, each string [1]."""
        if len(texts) not in (1, 2):
            raise UserError(f"there are {len(texts)} texts; BERT takes one or two")
        Preprocessor(self.tokenizer, max_length)  # checks the length
        segments = [self._pieces(text, with_offsets=False).ids for text in texts]
        counts = kept([tf.size(ids) for ids in segments], max_length - 1 - len(texts))
        if cut == "middle":
            segments = [
                tf.concat([ids[: head_of(count)], ids[tf.size(ids) - count + head_of(count) :]], 0)
                for ids, count in zip(segments, counts, strict=True)
            ]
        return self._joined(segments, counts, max_length)[0]

    def packed_question(
        self,
        question: tf.Tensor,
        context: tf.Tensor,
        max_length: int = 384,
        max_question_length: int = 64,
    ) -> QuestionFeatures:
        """The first window of a question and its context, each string [1]."""
        # Checks the lengths.
        WindowPreprocessor(self.tokenizer, max_length, max_question_length=max_question_length)
        short = self._pieces(question, with_offsets=False).ids
        _, long, starts, ends = self._pieces(context, with_offsets=True)
        in_short = tf.minimum(tf.size(short), max_question_length)
        counts = [in_short, tf.minimum(tf.size(long), max_length - 3 - in_short)]
        features, is_context, place = self._joined([short, long], counts, max_length)

        def at_tokens(values: tf.Tensor) -> tf.Tensor:
            found = tf.gather(tf.concat([[-1], values], axis=0), tf.where(is_context, place + 1, 0))
            return found[None]

        return QuestionFeatures(features, at_tokens(starts), at_tokens(ends))

    def _joined(
        self, segments: Sequence[tf.Tensor], counts: Sequence[tf.Tensor], max_length: int
    ) -> tuple[Features, tf.Tensor, tf.Tensor]:
        """The features; which tokens are pieces of the last segment; the places of tokens in it."""
        tokenizer = self.tokenizer
        token = tf.range(max_length)
        ids = tf.fill([max_length], tokenizer.pad_id)
        types = tf.zeros_like(token)
        first = 1
        for number, (segment, count) in enumerate(zip(segments, counts, strict=True)):
            place = token - first
            is_piece = (place >= 0) & (place < count)
            # One more, so that there is something to gather for a text without pieces.
            padded = tf.concat([[tokenizer.pad_id], segment], axis=0)
            ids = tf.where(is_piece, tf.gather(padded, tf.where(is_piece, place + 1, 0)), ids)
            ids = tf.where(place == count, tokenizer.sep_id, ids)
            types = tf.where((place >= 0) & (place <= count), number, types)
            first += count + 1
        ids = tf.where(token == 0, tokenizer.cls_id, ids)
        mask = tf.cast(token < first, tf.int32)
        features = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}
        return {name: each[None] for name, each in features.items()}, is_piece, place

    def _pieces(self, texts: tf.Tensor, with_offsets: bool) -> _FlatPieces:
        """`texts`, string [batch], as pieces; without offsets only `splits` and `ids` are valid."""
        lower_case = self.tokenizer.lower_case
        normalizer = self.tokenizer.settings.normalizer
        whole = self.tokenizer.settings.special_tokens == "whole"
        spared = _CAPITAL_SIGMA if self._has_sigmas else ""
        cleaned = normalize(texts, _cleaning_model(lower_case, normalizer, spared))
        if not (with_offsets or whole or self._has_sigmas):
            return self._whole_words(_wordpiece(cleaned.texts, self.tokenizer.wordpiece_model))
        traits = _ByteTraits(texts, lower_case, normalizer)
        if self._has_sigmas:
            pieces = self._wordpiece_with_sigmas(cleaned, traits)
        else:
            pieces = _wordpiece(cleaned.texts, self.tokenizer.wordpiece_model)
        if not (with_offsets or whole):
            return self._whole_words(pieces)
        # From the bytes of the cleaned text to slots of the original.
        row = owners(pieces.splits)
        first_byte, first_slot = (
            tf.gather(each, row) for each in (cleaned.splits, traits.first_slots)
        )
        starts, lasts = (
            first_slot + tf.gather(cleaned.origins, first_byte + byte)
            for byte in (pieces.starts, pieces.ends - 1)
        )
        pieces = pieces._replace(starts=starts, ends=traits.ends(lasts))
        special = _special_tokens(texts, traits.first_slots) if whole else None
        pieces = self._whole_words(pieces, special)
        first_slot = tf.gather(traits.first_slots, owners(pieces.splits))
        return pieces._replace(starts=pieces.starts - first_slot, ends=pieces.ends - first_slot)

    def _wordpiece_with_sigmas(self, cleaned: Normalized, traits: _ByteTraits) -> _FlatPieces:
        """The pieces of texts in which capital sigmas are still to be lower-cased."""
        import tensorflow_text as tf_text

        slots = cleaned.origins + tf.gather(traits.first_slots, owners(cleaned.splits))
        sigmas = positions(tf.gather(traits.ends_in_sigma(), slots))
        # Texts are cut in the middle of final sigmas: the first byte alone stands for ς, and the
        # second is dropped. There are no other broken characters, since cleaning drops them.
        bytes_and_ends = cleaned.splits[-1]
        is_start = counts(tf.concat([cleaned.splits[:-1], sigmas + 2], axis=0), bytes_and_ends)
        is_end = counts(tf.concat([cleaned.splits[1:] - 1, sigmas + 1], axis=0), bytes_and_ends)
        splits = tf.gather(splits_of(is_start), cleaned.splits)
        first_byte = tf.gather(cleaned.splits, owners(splits))
        starts = positions(is_start > 0) - first_byte
        ends = positions(is_end > 0) - first_byte
        parts = tf_text.ByteSplitter().split_by_offsets(
            cleaned.texts, ragged(starts, splits), ragged(ends, splits)
        )
        lowered = normalize(parts.values, _sigma_model()).texts
        pieces = _wordpiece(lowered, self.tokenizer.wordpiece_model)
        start = tf.gather(starts, owners(pieces.splits))
        of_texts = tf.gather(pieces.splits, splits)
        return _FlatPieces(of_texts, pieces.ids, pieces.starts + start, pieces.ends + start)

    def _whole_words(
        self, pieces: _FlatPieces, special: tuple[tf.Tensor, tf.Tensor] | None = None
    ) -> _FlatPieces:
        """Makes words over the limit one piece each, and the tokens of `_special_tokens` too."""
        tokenizer = self.tokenizer
        sizes = tf.cast(tf.gather(self._sizes, pieces.ids), tf.int32)
        starts_word, is_one, one = sizes >= 0, tf.zeros_like(sizes, tf.bool), tokenizer.unk_id
        if special is not None:
            numbers, begins = (tf.gather(each, pieces.starts) for each in special)
            is_one = numbers > 0
            starts_word = tf.where(is_one, begins > 0, starts_word)
            ids = [tokenizer.unk_id, *map(ids_of(tokenizer.vocabulary).get, SPECIAL_TOKENS)]
            one = tf.gather(ids, numbers)
        word = tf.cumsum(tf.cast(starts_word, tf.int32)) - 1
        # One more word, so that there is one in a text without pieces.
        words = tf.size(word) + 1
        characters_in_word = tf.math.unsorted_segment_sum(tf.abs(sizes), word, words)
        is_one |= tf.gather(characters_in_word > tokenizer.settings.longest_word, word)
        word_ends = tf.math.unsorted_segment_max(pieces.ends, word, words)
        ids = tf.where(is_one, one, pieces.ids)
        ends = tf.where(is_one, tf.gather(word_ends, word), pieces.ends)
        stays = starts_word | ~is_one
        values = (tf.gather(each, positions(stays)) for each in (ids, pieces.starts, ends))
        return _FlatPieces(tf.gather(splits_of(tf.cast(stays, tf.int32)), pieces.splits), *values)


def _special_tokens(texts: tf.Tensor, first_slots: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Where texts, string [batch], hold special tokens: two tensors int32 [slots], 0 elsewhere.

    The first is 1 + the place in `SPECIAL_TOKENS` at all bytes of one, the second 1 at its start.
    """
    # Cleaning deletes bytes that are not UTF-8 before it looks for special tokens.
    decoding, special = _special_models()
    decoded = normalize(texts, decoding)
    pieces = _wordpiece(decoded.texts, special)
    rows = owners(pieces.splits)
    origin = tf.gather(decoded.splits, rows)
    starts, ends = origin + pieces.starts, origin + pieces.ends
    ids = pieces.ids
    found = positions(
        (ids[:-2] == _OPEN)
        & (ends[:-2] == starts[1:-1])
        & (ids[1:-1] > _CLOSE)
        & (ends[1:-1] == starts[2:])
        & (ids[2:] == _CLOSE)
    )
    number = tf.gather(ids, found + 1) - _CLOSE
    first, last = (
        tf.gather(first_slots, tf.gather(rows, found))
        + tf.gather(decoded.origins, tf.gather(starts, each))
        for each in (found, found + 2)
    )
    slots = first_slots[-1]
    begun = tf.math.unsorted_segment_sum(number, first, slots)
    ended = tf.math.unsorted_segment_sum(number, last + 1, slots)
    return tf.cumsum(begun - ended), counts(first, slots)


def _size(piece: str, most: int) -> int:
    """How many characters a piece has, up to `most`; negative for "##" pieces, 0 for [UNK]."""
    if piece == UNK:
        return 0
    if piece.startswith("##") and piece != "##":
        return -min(len(piece) - 2, most)
    return min(len(piece), most)


@functools.cache
def _cleaning_model(lower_case: bool, normalizer: str, spared: str) -> np.ndarray:
    """The normalizer that cleans each character, except those that are spared: uint8 [bytes]."""
    changes = characters.cleaning_table(lower_case, normalizer=normalizer).changes()
    return normalizer_model(
        {
            string: [each for each in code_points if chr(each) not in spared]
            for string, code_points in changes.items()
        }
    )


@functools.cache
def _sigma_model() -> np.ndarray:
    """The normalizer that makes a capital sigma σ, and the first byte of one ς: uint8 [bytes]."""
    return normalizer_model({"\u03c3": [ord(_CAPITAL_SIGMA)]}, broken="\u03c2")


@functools.cache
def _special_models() -> tuple[np.ndarray, np.ndarray]:
    """The normalizer that drops broken bytes, and the model that finds special tokens: uint8."""
    pieces = [UNK, "[", "]", *(token.strip("[]") for token in SPECIAL_TOKENS)]
    assert (pieces[_OPEN], pieces[_CLOSE]) == ("[", "]")
    return normalizer_model({}), wordpiece_model_of(pieces, 0)
