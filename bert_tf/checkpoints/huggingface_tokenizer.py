"""The tokenizer's files in a Hugging Face folder: vocab.txt, tokenizer.json, tokenizer_config.json.

transformers 5 writes only tokenizer.json, older versions vocab.txt too. Every version opens its
BERT tokenizer from vocab.txt and tokenizer_config.json.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import plain_json
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
# Added tokens that a message shows.
_SHOWN = 5
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


def vocabulary(folder: Path) -> tuple[str, ...] | None:
    """The pieces in the order of their ids; None if the folder has no vocabulary.

    Raises:
        UserError: it is not a BERT vocabulary.
    """
    _check_class(folder)
    pieces = read_beside(folder)
    path = folder / TOKENIZER_FILE
    if pieces is not None:
        return _with_added(pieces, folder)
    if not path.is_file():
        return None
    fields = plain_json.read_object(path, "tokenizer")
    try:
        ids = dict(fields["model"]["vocab"])
        ids |= {token["content"]: token["id"] for token in fields.get("added_tokens", [])}
        ordered = sorted(ids, key=ids.__getitem__)
        whole = [ids[piece] for piece in ordered] == list(range(len(ids)))
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole or fields["model"].get("type") != "WordPiece":
        raise UserError(f"{path} is not a WordPiece tokenizer with an id for every piece")
    return _with_added(check_vocabulary(ordered, f"vocabulary of {path}"), folder)


def lower_case(folder: Path) -> bool | None:
    """Whether the tokenizer lower-cases; None if no file says so.

    Raises:
        UserError: a file is not JSON.
    """
    value = _settings(folder)["do_lower_case"]
    return value if isinstance(value, bool) else None


def settings(folder: Path) -> dict[str, Any]:
    """How the tokenizer reads texts besides its casing, as `Description.tokenizer` has it.

    transformers leaves special and added tokens whole, and takes a word of more than 100 characters
    for [UNK] unless tokenizer.json says otherwise.

    Raises:
        UserError: a file is not JSON, or a setting is none that bert_tf has.
    """
    found, longest = _settings(folder), _LONGEST_WORD
    path = folder / TOKENIZER_FILE
    if path.is_file():
        model = plain_json.read_object(path, "tokenizer").get("model")
        if isinstance(model, dict):
            longest = model.get("max_input_chars_per_word", longest)
    fields = {
        "lower_case": found["do_lower_case"] is not False,
        "special_tokens": "whole",
        "added_tokens": list(_added(folder)),
        "longest_word": longest,
    }
    for name, ours in (("strip_accents", "strip_accents"), (_CHINESE, "split_chinese")):
        if isinstance(found[name], bool):
            fields[ours] = found[name]
    return TokenizerSettings.from_dict(fields, str(folder)).besides_casing


def differences(folder: Path) -> tuple[str, ...]:
    """Warnings where the tokenizer finds added tokens in a text and ours does not, or vice versa.

    Raises:
        UserError: a file is not JSON.
    """
    added, notes = _added(folder), []
    alone = [token for token, fields in added.items() if fields.get("single_word") is True]
    exact = [token for token, fields in added.items() if fields.get("normalized") is False]
    if alone:
        notes.append(
            "warning: its own tokenizer takes these added tokens only for whole words, bert_tf's "
            f"also inside words: {_shown(alone)}"
        )
    if exact and _settings(folder)["do_lower_case"] is not False:
        notes.append(
            "warning: its own tokenizer tells capitals from small letters in these added tokens, "
            f"bert_tf's does not: {_shown(exact)}"
        )
    return tuple(notes)


def _shown(tokens: Sequence[str]) -> str:
    return ", ".join(tokens[:_SHOWN]) + ", …" * (len(tokens) > _SHOWN)


def _check_class(folder: Path) -> None:
    """Raises UserError if the words are cut by a program that bert_tf does not have."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return
    fields = plain_json.read_object(path, "tokenizer")
    for name, own in _OWN_TOKENIZERS.items():
        if name in fields and fields[name] not in own:
            raise UserError(
                f"{path}: {name} is {fields[name]!r}; bert_tf has only BERT's own tokenizer, so "
                "it cannot read texts for this checkpoint"
            )


def _added(folder: Path) -> dict[str, dict[str, Any]]:
    """The tokens that were added to BERT's, in the order of their ids, with their fields."""
    listed: list[tuple[Any, Any, dict[str, Any]]] = []  # token, id, its other fields
    for name in (ADDED_FILE, CONFIG_FILE, TOKENIZER_FILE):
        if not (folder / name).is_file():
            continue
        fields = plain_json.read_object(folder / name, "tokenizer")
        if name == ADDED_FILE:
            listed += [(token, id, {}) for token, id in fields.items()]
        elif name == CONFIG_FILE:
            decoder = fields.get("added_tokens_decoder")
            pairs = decoder.items() if isinstance(decoder, dict) else ()
            listed += [
                (each.get("content"), int(id), each)
                for id, each in pairs
                if isinstance(each, dict) and id.isdecimal()
            ]
        elif isinstance(fields.get("added_tokens"), list):
            listed += [
                (each.get("content"), each.get("id"), each)
                for each in fields["added_tokens"]
                if isinstance(each, dict)
            ]
    found: dict[str, dict[str, Any]] = {}
    for token, id, each in listed:
        if isinstance(token, str) and type(id) is int and token not in SPECIAL_TOKENS:
            found[token] = found.get(token, {}) | each | {"id": id}
    return dict(sorted(found.items(), key=lambda item: item[1]["id"]))


def _with_added(pieces: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The pieces of vocab.txt and the added tokens whose ids follow.

    Raises:
        UserError: an added token has an id that is another piece's, or leaves a gap.
    """
    for token, fields in _added(folder).items():
        id = fields["id"]
        if id == len(pieces):
            pieces += (token,)
        elif not (0 <= id < len(pieces) and pieces[id] == token):
            raise UserError(
                f"{folder}: the added token {token!r} has the id {id}, which is another piece's or "
                f"leaves a gap after the {len(pieces)} pieces of the vocabulary; correct it"
            )
    return pieces


def max_length(folder: Path) -> int | None:
    """The most tokens of an input; None if no file says so.

    Raises:
        UserError: a file is not JSON.
    """
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    value = plain_json.read_object(path, "tokenizer").get("model_max_length")
    return value if type(value) is int and 0 < value < _NO_LENGTH else None


def _settings(folder: Path) -> dict[str, Any]:
    """The settings for cleaning text; tokenizer_config.json overrides tokenizer.json."""
    found: dict[str, Any] = dict.fromkeys(_NORMALIZER)
    if (folder / TOKENIZER_FILE).is_file():
        normalizer = plain_json.read_object(folder / TOKENIZER_FILE, "tokenizer").get("normalizer")
        if isinstance(normalizer, dict):
            found |= {name: normalizer.get(theirs) for name, theirs in _NORMALIZER.items()}
    if (folder / CONFIG_FILE).is_file():
        config = plain_json.read_object(folder / CONFIG_FILE, "tokenizer")
        found |= {name: config[name] for name in _NORMALIZER if name in config}
    return found


def write(
    folder: Path,
    pieces: Sequence[str],
    lower_case: bool | None,
    tokenizer: Mapping[str, Any],
    max_length: int,
) -> None:
    """Writes vocab.txt, and tokenizer_config.json with the settings of the tokenizer.

    Args:
        folder: where to.
        pieces: the vocabulary.
        lower_case, tokenizer: as in a `Description`.
        max_length: the most tokens of an input.
    """
    write_beside(folder, pieces)
    fields: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer",
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
