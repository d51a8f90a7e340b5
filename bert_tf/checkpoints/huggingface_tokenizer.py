"""The tokenizer's files in a Hugging Face folder: vocab.txt, tokenizer.json, tokenizer_config.json.

transformers 5 writes only tokenizer.json, older versions vocab.txt too. Every version opens its
BERT tokenizer from vocab.txt and tokenizer_config.json.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import plain_json
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import (
    SPECIAL_TOKENS,
    TokenizerSettings,
    check_vocabulary,
    read_beside,
    write_beside,
)

CONFIG_FILE = "tokenizer_config.json"
TOKENIZER_FILE = "tokenizer.json"
ADDED_FILE = "added_tokens.json"

# Keys that say how words are cut, and the values for BERT's own way.
_OWN_TOKENIZERS = {
    "word_tokenizer_type": ("basic", None),
    "subword_tokenizer_type": ("wordpiece", None),
}
# Python refuses to read a number with thousands of digits.
_MOST_DIGITS = 18
# transformers' own longest word, in characters.
_LONGEST_WORD = 100

# transformers writes a far larger number for no limit.
_NO_LENGTH = 10**9
_CHINESE = "tokenize_chinese_chars"
# The settings of tokenizer_config.json -> their names in tokenizer.json.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    _CHINESE: "handle_chinese_chars",
}


class TokenizerFiles:
    """What the tokenizer's files of `folder` say; each JSON file is read once, here.

    Raises:
        UserError: a file is not JSON.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._config, self._tokenizer, self._added_ids = (
            plain_json.read_object(folder / name, "tokenizer") if (folder / name).is_file() else {}
            for name in (CONFIG_FILE, TOKENIZER_FILE, ADDED_FILE)
        )
        self._cleaning = self._settings_of_cleaning()
        self._added = self._added_tokens()

    def vocabulary(self) -> tuple[str, ...] | None:
        """The pieces in the order of their ids; None if the folder has no vocabulary.

        Raises:
            UserError: it is not a BERT vocabulary.
        """
        self._check_class()
        pieces = read_beside(self._folder)
        path = self._folder / TOKENIZER_FILE
        if pieces is not None:
            return self._with_added(pieces)
        if not path.is_file():
            return None
        fields = self._tokenizer
        try:
            ids = dict(fields["model"]["vocab"])
            ids |= {token["content"]: token["id"] for token in fields.get("added_tokens", [])}
            ordered = sorted(ids, key=ids.__getitem__)
            whole = [ids[piece] for piece in ordered] == list(range(len(ids)))
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole or fields["model"].get("type") != "WordPiece":
            raise UserError(f"{path} is not a WordPiece tokenizer with an id for every piece")
        return self._with_added(check_vocabulary(ordered, f"vocabulary of {path}"))

    def lower_case(self) -> bool | None:
        """Whether the tokenizer lower-cases; None if no file says so."""
        value = self._cleaning["do_lower_case"]
        return value if isinstance(value, bool) else None

    def settings(self) -> dict[str, Any]:
        """How the tokenizer reads texts besides its casing, as `Description.tokenizer` has it.

        transformers leaves special and added tokens whole. A word of more than 100 characters is
        [UNK] unless tokenizer.json says otherwise.

        Raises:
            UserError: bert_tf's tokenizer cannot have one of the settings.
        """
        model = self._tokenizer.get("model")
        fields = {
            "special_tokens": "whole",
            "added_tokens": list(self._added),
            "longest_word": model.get("max_input_chars_per_word", _LONGEST_WORD)
            if isinstance(model, dict)
            else _LONGEST_WORD,
        }
        for name, ours in (("strip_accents", "strip_accents"), (_CHINESE, "split_chinese")):
            if isinstance(self._cleaning[name], bool):
                fields[ours] = self._cleaning[name]
        return TokenizerSettings.from_dict(fields, str(self._folder)).besides_casing

    def differences(self) -> tuple[str, ...]:
        """Warnings where the tokenizer and ours find added tokens in different places."""
        notes = []
        alone = [name for name, each in self._added.items() if each.get("single_word") is True]
        exact = [name for name, each in self._added.items() if each.get("normalized") is False]
        if alone:
            notes.append(
                "warning: its own tokenizer takes these added tokens only for whole words, "
                f"bert_tf's also inside words: {listed(tuple(alone))}"
            )
        if exact and self._cleaning["do_lower_case"] is not False:
            notes.append(
                "warning: its own tokenizer tells capitals from small letters in these added "
                f"tokens, bert_tf's does not: {listed(tuple(exact))}"
            )
        return tuple(notes)

    def max_length(self) -> int | None:
        """The most tokens of an input; None if no file says so."""
        value = self._config.get("model_max_length")
        return value if type(value) is int and 0 < value < _NO_LENGTH else None

    def _check_class(self) -> None:
        """Raises UserError if the words are cut by a program that bert_tf does not have."""
        for name, own in _OWN_TOKENIZERS.items():
            if name in self._config and self._config[name] not in own:
                raise UserError(
                    f"{self._folder / CONFIG_FILE}: {name} is {self._config[name]!r}; bert_tf has "
                    "only BERT's own tokenizer, so it cannot read texts for this checkpoint"
                )

    def _settings_of_cleaning(self) -> dict[str, Any]:
        """The settings for cleaning text; tokenizer_config.json overrides tokenizer.json."""
        found: dict[str, Any] = dict.fromkeys(_NORMALIZER)
        normalizer = self._tokenizer.get("normalizer")
        if isinstance(normalizer, dict):
            found |= {name: normalizer.get(theirs) for name, theirs in _NORMALIZER.items()}
        return found | {name: self._config[name] for name in _NORMALIZER if name in self._config}

    def _added_tokens(self) -> dict[str, dict[str, Any]]:
        """The tokens that were added to BERT's, in the order of their ids, with their fields."""
        tokens: list[tuple[Any, Any, dict[str, Any]]]  # token, id, its other fields
        tokens = [(token, id, {}) for token, id in self._added_ids.items()]
        decoder = self._config.get("added_tokens_decoder")
        tokens += [
            (each.get("content"), int(id), each)
            for id, each in (decoder.items() if isinstance(decoder, dict) else ())
            if isinstance(each, dict) and id.isdecimal() and len(id) <= _MOST_DIGITS
        ]
        entries = self._tokenizer.get("added_tokens")
        tokens += [
            (each.get("content"), each.get("id"), each)
            for each in (entries if isinstance(entries, list) else ())
            if isinstance(each, dict)
        ]
        found: dict[str, dict[str, Any]] = {}
        for token, id, each in tokens:
            if isinstance(token, str) and type(id) is int and token not in SPECIAL_TOKENS:
                found[token] = found.get(token, {}) | each | {"id": id}
        return dict(sorted(found.items(), key=lambda item: item[1]["id"]))

    def _with_added(self, pieces: tuple[str, ...]) -> tuple[str, ...]:
        """The pieces of the vocabulary and the added tokens whose ids follow.

        Raises:
            UserError: an added token has an id that is another piece's, or leaves a gap.
        """
        for token, fields in self._added.items():
            id = fields["id"]
            if id == len(pieces):
                pieces += (token,)
            elif not (0 <= id < len(pieces) and pieces[id] == token):
                raise UserError(
                    f"{self._folder}: the added token {token!r} has the id {id}, which is another "
                    f"piece's or leaves a gap after the {len(pieces)} pieces of the vocabulary; "
                    "correct it"
                )
        return pieces


def write(
    folder: Path,
    pieces: Sequence[str],
    lower_case: bool | None,
    tokenizer: Mapping[str, Any],
    max_length: int,
    tokenizer_class: str,
) -> None:
    """Writes vocab.txt, and tokenizer_config.json with the settings of the tokenizer.

    Args:
        folder: where to.
        pieces: the vocabulary.
        lower_case, tokenizer: as in a `Description`.
        max_length: the most tokens of an input.
        tokenizer_class: the class of transformers.
    """
    write_beside(folder, pieces)
    fields: dict[str, Any] = {
        "tokenizer_class": tokenizer_class,
        "model_max_length": max_length,
        _CHINESE: tokenizer.get("split_chinese", True),
        "strip_accents": tokenizer.get("strip_accents"),
    }
    fields |= {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
    if lower_case is not None:
        fields["do_lower_case"] = lower_case
    if added := tokenizer.get("added_tokens"):
        fields["added_tokens_decoder"] = {
            str(pieces.index(token)): {
                "content": token,
                "lstrip": False,
                "normalized": True,
                "rstrip": False,
                "single_word": False,
                "special": False,
            }
            for token in added
        }
    plain_json.write(folder / CONFIG_FILE, fields)
