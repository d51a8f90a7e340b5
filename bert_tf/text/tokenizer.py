"""BERT's tokenizer inside the graph: text cleaning and WordPiece, with google-research/bert's ids.

Nearly all texts are already clean. They go straight to the WordPiece op of tf-text, "Fast WordPiece
Tokenization" (Song et al., arXiv 2012.15524). Other texts are cleaned first.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.compat import wordpiece_model
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import (
    SPECIAL_TOKENS,
    UNK,
    TokenizerSettings,
    check_vocabulary,
    ids_of,
    pieces_of_model,
    read_vocabulary,
)
from bert_tf.text import characters, cleaning
from bert_tf.text.cleaning import Prepared
from bert_tf.text.rows import owners, ragged
from bert_tf.text.unicode_rules import rules_of

_TEXTS = tf.TensorSpec([None], tf.string)


def _traced_once(method: Callable) -> functools.cached_property[Callable]:
    """A method on string [n] as a function of the graph, traced once for each object."""

    def traced(self: Any) -> Callable:
        def on_cpu(texts: tf.Tensor) -> Any:
            # Strings live on the CPU. Otherwise the small integer ops would go to a GPU and back.
            with tf.device("/CPU:0"):
                return method(self, texts)

        with tf.init_scope():
            function = tf.function(on_cpu, input_signature=[_TEXTS], autograph=False)
            return function.get_concrete_function()

    return functools.cached_property(traced)


class Pieces(NamedTuple):
    """Pieces and their places in the texts, each RaggedTensor int32 [batch, (pieces)]."""

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor  # the byte of the original UTF-8 text where the piece starts
    ends: tf.RaggedTensor  # the byte where it ends (exclusive)


class Tokenizer:
    """Splits text into word pieces exactly as google-research/bert's `FullTokenizer`.

    It works eagerly, in `tf.data` and in any traced function, and needs no lookup table.

    >>> pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat ##s sat .".split()
    >>> tokenizer = Tokenizer(pieces)
    >>> ids = tokenizer.tokenize(["The cats sat.", "The dog"])
    >>> ids.to_list()
    [[5, 6, 7, 8, 9], [5, 1]]
    >>> tokenizer.detokenize(ids).numpy().tolist()
    [b'the cats sat .', b'the [UNK]']
    >>> tokenizer.tokenize("The [MASK]").numpy().tolist()  # in text "[MASK]" is three unknown words
    [5, 1, 1, 1]
    >>> Tokenizer(pieces, special_tokens="whole").tokenize("The [MASK]").numpy().tolist()
    [5, 4]

    With `normalizer="huggingface"` and the settings of a tokenizer of Hugging Face it gives that
    tokenizer's ids. Its rules differ from google-research's:

    - A capital sigma always becomes σ; with "google" one at the end of a word becomes ς.
    - A private-use character is dropped; with "google" a word with one is [UNK]. (Without
      `split_chinese`, no piece with one of planes 15 and 16 is ever matched.)
    - U+2B820 to U+2B91F are letters, by a slip in a range, but no piece with one is ever matched;
      with "google" they are ideographs.
    - Some 500 characters, most of them newer than one of the two Unicode versions, are punctuation,
      accents, format characters or capitals for one of the two only.

    Offsets differ only where an accent is dropped or marks change their order; see
    `tokenize_with_offsets`.

    Attributes:
        vocabulary: tuple of the pieces in the order of their ids.
        settings: how texts are read (`bert_tf.io.vocabulary.TokenizerSettings`).
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike | Sequence[str],
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        special_tokens: str = "text",
        added_tokens: Sequence[str] = (),
        longest_word: int = 200,
        exact_tokens: Sequence[str] = (),
        normalizer: str = "google",
    ):
        """Builds the tokenizer.

        Args:
            vocabulary: path of a vocabulary file, or the pieces themselves in the order of their
                ids.
            lower_case: lower-case, as for the uncased checkpoints.
            strip_accents: drop accents; None follows `lower_case`, as in the reference.
            split_chinese: make each CJK ideograph a word of its own, as in the reference.
            special_tokens: "whole" takes "[MASK]", "[CLS]" … in text for the special tokens.
                "text" takes them for plain text, as in the reference.
            added_tokens: further pieces of the vocabulary that stay whole in text, also within a
                word. They are looked for in cleaned text: "<E1>" is found as "<e1>" when
                lower-casing. Of two that overlap the first counts, of two that start at one place
                the longer.
            longest_word: characters of the longest word that is cut into pieces; longer words are
                [UNK].
            exact_tokens: as `added_tokens`, but looked for in the text as it is given: "<E1>" is
                not found as "<e1>".
            normalizer: "google" follows google-research's rules for characters, "huggingface" those
                of Hugging Face's library tokenizers. The class lists the differences.

        Raises:
            UserError: the vocabulary is missing, empty, not UTF-8, has a blank or repeated piece
                (for a trained model see `from_checkpoint`), or lacks a special or an added token;
                or a setting has another value; or there are too many added tokens, or one that
                cleaned text cannot hold.
        """
        if isinstance(vocabulary, str | os.PathLike):
            self.vocabulary = read_vocabulary(vocabulary)
        else:
            self.vocabulary = check_vocabulary(vocabulary)
        self.settings = TokenizerSettings(
            lower_case,
            strip_accents,
            split_chinese,
            special_tokens,
            tuple(added_tokens),
            longest_word,
            tuple(exact_tokens),
            normalizer,
        )
        ids = ids_of(self.vocabulary)
        for token in (*self.settings.added_tokens, *self.settings.exact_tokens):
            if token not in ids:
                raise UserError(f"the added token {token!r} is not in the vocabulary; add it there")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[token] for token in SPECIAL_TOKENS
        )
        # Raises the error of a vocabulary that cannot be used.
        _ = self._graphs

    @classmethod
    def of(cls, vocabulary: Sequence[str], settings: TokenizerSettings) -> "Tokenizer":
        """The tokenizer of a trained model's pieces, which may be blank or repeated."""
        return cls(pieces_of_model(vocabulary), **vars(settings))

    def with_settings(self, **changes: Any) -> "Tokenizer":
        """A tokenizer with the same vocabulary and some other settings.

        >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the".split())
        >>> tokenizer.with_settings(special_tokens="whole").tokenize("The [MASK]").numpy().tolist()
        [5, 4]
        """
        return Tokenizer.of(self.vocabulary, dataclasses.replace(self.settings, **changes))

    def with_tokens(self, tokens: Sequence[str]) -> "Tokenizer":
        """A tokenizer that keeps `tokens` whole in text too; new ones come last in its vocabulary.

        A token that is a piece of the vocabulary already keeps its id.

        >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the".split())
        >>> tokenizer.with_tokens(["<e1>", "the"]).tokenize("<E1>the<e1>").numpy().tolist()
        [6, 5, 6]

        Args:
            tokens: a list of texts.

        Raises:
            UserError: `tokens` is not a list, or a token is not a text, is blank, begins or ends
                with a space, has a line break, is not Unicode, is special, or is repeated.
        """
        if not isinstance(tokens, list | tuple):
            raise UserError(f"the tokens to add are {tokens!r}; give a list such as ['<e1>']")
        if not tokens:
            return self
        for place, token in enumerate(tokens):
            if wrong := _wrong_token(token, tokens[:place]):
                raise UserError(f"the token {token!r} cannot be added, because it {wrong}")
        new = [token for token in tokens if token not in self.settings.added_tokens]
        settings = dataclasses.replace(
            self.settings, added_tokens=(*self.settings.added_tokens, *new)
        )
        first: dict[str, str] = {}
        cleaned = cleaning.added_tokens(settings).values()
        for token, form in zip(dict.fromkeys(settings.added_tokens), cleaned, strict=True):
            other = first.setdefault(form, token)
            if token in new and other != token:
                raise UserError(
                    f"the token {token!r} cannot be added, because {other!r} is the same text for "
                    "this tokenizer; remove one of them"
                )
        known = {*self.vocabulary}
        pieces = [token for token in new if token not in known]
        return Tokenizer.of((*self.vocabulary, *pieces), settings)

    @property
    def lower_case(self) -> bool:
        """Whether text is lower-cased."""
        return self.settings.lower_case

    @classmethod
    def from_checkpoint(
        cls, path: str | os.PathLike | Checkpoint, add_tokens: Sequence[str] = ()
    ) -> "Tokenizer":
        """The tokenizer that belongs to a checkpoint, with its vocabulary and its settings.

        A checkpoint that does not record its casing is cased if a piece of its vocabulary has a
        capital letter.

        Args:
            path: as for `Encoder.from_checkpoint`, or a checkpoint that is open already.
            add_tokens: further texts that stay whole, as for `with_tokens`.

        Raises:
            UserError: there is no checkpoint at `path`; or it has no vocabulary, a damaged one, or
                not the one that it was trained with; or as `with_tokens`.
        """
        checkpoint = path if isinstance(path, Checkpoint) else reading.find(path)
        vocabulary = checkpoint.read_vocabulary()
        if vocabulary is None:
            raise UserError(f"{checkpoint.folder} has no vocabulary; copy its vocab.txt there")
        found = cls.of(vocabulary, checkpoint.description.tokenizer_settings(vocabulary))
        return found.with_tokens(add_tokens)

    @property
    def vocab_size(self) -> int:
        """The number of pieces."""
        return len(self.vocabulary)

    @property
    def wordpiece_model(self) -> np.ndarray:
        """The model of tf-text's WordPiece op for the vocabulary: uint8 [bytes]."""
        return self._graphs.wordpiece_model

    def tokenize(self, texts: Any) -> tf.RaggedTensor:
        """The piece ids of each text: RaggedTensor int32 [batch, (pieces)].

        Args:
            texts: UTF-8 strings of any shape, dense or ragged; pieces are a new last axis. One
                string alone gives a Tensor int32 [pieces].
        """
        (ids,) = _over_flat(lambda flat: [self._graphs.tokenize(flat)], texts)
        return ids

    def tokenize_with_offsets(self, texts: Any) -> Pieces:
        """As `tokenize`, with the byte range in the original text of each piece.

        Ranges ascend and lie on character boundaries. They overlap only where one character gives
        several pieces: these pieces share its range. An accent that is stripped belongs to the
        range of the character before it.

        >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cafe ##s".split())
        >>> ids, starts, ends = tokenizer.tokenize_with_offsets(["Cafés"])  # é has two bytes
        >>> ids.to_list(), starts.to_list(), ends.to_list()
        ([[5, 6]], [[0, 5]], [[5, 6]])

        Args:
            texts: as for `tokenize`.
        """
        return Pieces(*_over_flat(self._graphs.tokenize_with_offsets, texts))

    def detokenize(self, ids: Any) -> tf.Tensor:
        """The text of the pieces: words are joined by spaces, and "##" pieces to the piece before.

        Args:
            ids: int [..., pieces], dense or ragged.

        Returns:
            string [...]. Characters that cleaning removed are lost; punctuation has spaces around.
        """
        pieces = tf.ragged.map_flat_values(lambda each: tf.gather(self.vocabulary, each), ids)
        joined = tf.strings.reduce_join(pieces, axis=-1, separator=" ")
        return tf.strings.regex_replace(joined, r" ##", "")

    @functools.cached_property
    def _graphs(self) -> "_Graphs":
        return _graphs(self.vocabulary, self.settings)

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the graphs, which are traced again when they are needed."""
        return {name: value for name, value in vars(self).items() if name != "_graphs"}


class _Graphs:
    """The traced functions of all tokenizers with the same pieces and settings."""

    def __init__(self, vocabulary: tuple[str, ...], settings: TokenizerSettings):
        self._settings = settings
        # Raises the errors of added tokens.
        cleaning.added_tokens(settings)
        self.wordpiece_model = wordpiece_model_of(
            _as_cleaned(vocabulary, settings), ids_of(vocabulary)[UNK], settings.longest_word
        )

    @_traced_once
    def _wordpiece(self, parts: tf.Tensor) -> list[tf.RaggedTensor]:
        import tensorflow_text as tf_text

        op = tf_text.FastWordpieceTokenizer(
            model_buffer=tf.constant(self.wordpiece_model), token_out_type=tf.int32
        )
        return [each.with_row_splits_dtype(tf.int32) for each in op.tokenize_with_offsets(parts)]

    @_traced_once
    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        prepared = cleaning.prepare(texts, self._settings)
        return _by_text(self._wordpiece(prepared.parts)[0], prepared)

    @_traced_once
    def tokenize_with_offsets(self, texts: tf.Tensor) -> list[tf.RaggedTensor]:
        prepared = cleaning.prepare(texts, self._settings)
        ids, *offsets = self._wordpiece(prepared.parts)
        starts, ends = (tf.cast(each.values, tf.int32) for each in offsets)
        starts, ends = tf.cond(
            (tf.size(prepared.parts) > tf.size(texts)) | (tf.size(prepared.starts) > 0),
            lambda: _in_original(prepared, owners(ids.row_splits), starts, ends),
            lambda: (starts, ends),
        )
        return [_by_text(ids.with_values(each), prepared) for each in (ids.values, starts, ends)]


# Tracing takes a second. A program uses few vocabularies, but may load many models of one.
_graphs = functools.lru_cache(maxsize=8)(_Graphs)


def _as_cleaned(vocabulary: Sequence[str], settings: TokenizerSettings) -> list[str]:
    """The pieces as WordPiece matches them against cleaned text."""
    stand_ins = cleaning.stand_ins(settings)
    letters = {} if settings.split_chinese else characters.ideographs_as_letters()
    taken = {*map(chr, letters.values()), *characters.STAND_INS}
    last = ids_of(vocabulary)
    is_deleted = rules_of("google").is_deleted
    cleaned = []
    for number, piece in enumerate(vocabulary):
        is_usable = bool(piece) and last[piece] == number
        # A piece with a space in it (U+2028 is in the published Chinese vocabulary), or a character
        # that cleaning deletes, never matches a text in the reference.
        is_odd = any(each.isspace() or is_deleted(each) or each in taken for each in piece)
        if is_usable and piece in stand_ins:
            cleaned.append(stand_ins[piece])
        elif is_usable and not is_odd:
            cleaned.append(piece.translate(letters))
        else:
            cleaned.append(f"{characters.NEVER}{number}")
    return cleaned


def _wrong_token(token: Any, before: Sequence[Any]) -> str | None:
    """Why a token cannot be added, in words; None if it can."""
    if not isinstance(token, str):
        return "is not a text; give texts such as '<e1>'"
    if not token.strip():
        return "is blank; remove it"
    if token != token.strip() or len(token.splitlines()) > 1:
        return "begins or ends with a space, or has a line break; remove that"
    if token in SPECIAL_TOKENS:
        return "is a special token; set special_tokens='whole' to find it in text"
    if any("\ud800" <= each <= "\udfff" for each in token):
        return "has half of a surrogate pair, which no UTF-8 text has; correct it"
    return "is listed twice; remove one of them" if token in before else None


def _by_text(pieces: tf.RaggedTensor, prepared: Prepared) -> tf.RaggedTensor:
    """The pieces of each text from those of each part: RaggedTensor [batch, (pieces)]."""
    return ragged(pieces.values, tf.gather(pieces.row_splits, prepared.splits))


def _in_original(
    prepared: Prepared, part: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Turns byte offsets into a prepared part into offsets into the text; all int32 [pieces]."""
    part_start = tf.gather(prepared.part_starts, part)
    first_byte = tf.gather(prepared.first_bytes, part)
    was_clean = first_byte < 0

    def original(offsets: tf.Tensor, origin: tf.Tensor, byte: tf.Tensor) -> tf.Tensor:
        # One zero more, so that there is something to gather for the clean parts.
        origin = tf.concat([[0], origin], axis=0)
        mapped = tf.gather(origin, tf.where(was_clean, 0, 1 + first_byte + byte))
        return part_start + tf.where(was_clean, offsets, mapped)

    return original(starts, prepared.starts, starts), original(ends, prepared.ends, ends - 1)


def _over_flat(function: Callable, texts: Any) -> list:
    """Calls `function` on the texts as string [n] and gives its ragged results their axes back."""
    if isinstance(texts, tf.RaggedTensor):
        texts = texts.with_row_splits_dtype(tf.int64)  # as the results have them
        return [texts.with_flat_values(part) for part in _over_flat(function, texts.flat_values)]
    texts = tf.convert_to_tensor(texts, tf.string)
    if texts.shape.rank == 0:
        return [part.values for part in function(texts[None])]
    if texts.shape.rank == 1:
        return function(texts)
    return _over_flat(
        function, tf.RaggedTensor.from_tensor(texts, ragged_rank=texts.shape.rank - 1)
    )


def wordpiece_model_of(
    pieces: Sequence[str], unk_id: int, longest_word: int = cleaning.MAX_WORD_CHARACTERS
) -> np.ndarray:
    """The automaton of the WordPiece op for these pieces: uint8 [bytes]."""
    import tensorflow_text as tf_text

    with tf.init_scope(), tf.device("/CPU:0"):
        try:
            # A character has at most four bytes, so this refuses no word that the reference takes.
            # Cleaning finds the words that the reference refuses.
            op = tf_text.FastWordpieceTokenizer(
                pieces, max_bytes_per_word=4 * longest_word, unknown_token=pieces[unk_id]
            )
        except RuntimeError as error:
            raise UserError(f"vocabulary cannot be used: {error}") from error
    return wordpiece_model(op)
