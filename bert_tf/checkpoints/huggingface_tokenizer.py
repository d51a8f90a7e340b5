"""The tokenizer's files in a Hugging Face folder: vocab.txt, tokenizer.json, tokenizer_config.json.

transformers 5 writes only tokenizer.json, older versions vocab.txt too. Every version opens its
BERT tokenizer from vocab.txt and tokenizer_config.json.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import plain_json
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import (
    SPECIAL_TOKENS,
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

# transformers writes a far larger number for no limit.
_NO_LENGTH = 10**9
# The settings of tokenizer_config.json -> their names in tokenizer.json.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


def vocabulary(folder: Path) -> tuple[str, ...] | None:
    """The pieces in the order of their ids; None if the folder has no vocabulary.

    Raises:
        UserError: it is not a BERT vocabulary.
    """
    _check_class(folder)
    pieces = read_beside(folder)
    path = folder / TOKENIZER_FILE
    if pieces is not None or not path.is_file():
        return pieces
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
    return check_vocabulary(ordered, f"vocabulary of {path}")


def lower_case(folder: Path) -> bool | None:
    """Whether the tokenizer lower-cases; None if no file says so.

    Raises:
        UserError: a file is not JSON.
    """
    value = _settings(folder)["do_lower_case"]
    return value if isinstance(value, bool) else None


def differences(folder: Path) -> tuple[str, ...]:
    """Warnings where the tokenizer cleans text differently from BERT's and therefore from ours.

    Raises:
        UserError: a file is not JSON.
    """
    found, notes = _settings(folder), []
    lower, strip = found["do_lower_case"], found["strip_accents"]
    if isinstance(strip, bool) and isinstance(lower, bool) and strip != lower:
        theirs, ours = ("strips", "keeps") if strip else ("keeps", "strips")
        notes.append(f"warning: its own tokenizer {theirs} accents, bert_tf's {ours} them")
    if found["tokenize_chinese_chars"] is False:
        notes.append("warning: its own tokenizer keeps Chinese words whole, bert_tf's does not")
    if added := _added_tokens(folder):
        shown = ", ".join(added[:_SHOWN]) + ", …" * (len(added) > _SHOWN)
        notes.append(f"warning: its added tokens are read as plain text: {shown}")
    return tuple(notes)


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


def _added_tokens(folder: Path) -> list[str]:
    """The tokens that were added to BERT's, in the order of their ids."""
    found: dict[str, int] = {}
    for name in (ADDED_FILE, CONFIG_FILE, TOKENIZER_FILE):
        if not (folder / name).is_file():
            continue
        fields = plain_json.read_object(folder / name, "tokenizer")
        if name == ADDED_FILE:
            found |= {token: id for token, id in fields.items() if type(id) is int}
        elif name == CONFIG_FILE:
            decoder = fields.get("added_tokens_decoder")
            pairs = decoder.items() if isinstance(decoder, dict) else ()
            found |= {
                str(each.get("content")): int(id)
                for id, each in pairs
                if isinstance(each, dict) and id.isdecimal()
            }
        else:
            listed = fields.get("added_tokens")
            found |= {
                str(each.get("content")): each["id"]
                for each in (listed if isinstance(listed, list) else ())
                if isinstance(each, dict) and type(each.get("id")) is int
            }
    return sorted(found.keys() - {*SPECIAL_TOKENS}, key=found.__getitem__)


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


def write(folder: Path, pieces: Sequence[str], lower_case: bool | None, max_length: int) -> None:
    """Writes vocab.txt, and tokenizer_config.json with the casing if it is known."""
    write_beside(folder, pieces)
    fields: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer",
        "model_max_length": max_length,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
    }
    fields |= {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
    if lower_case is not None:
        fields["do_lower_case"] = lower_case
    plain_json.write(folder / CONFIG_FILE, fields)
