"""The tokenizer's files in a Hugging Face folder: vocab.txt, tokenizer.json, tokenizer_config.json.

transformers 5 writes tokenizer.json alone, older versions vocab.txt too; with vocab.txt and
tokenizer_config.json every version makes its BERT tokenizer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import plain_json
from bert_tf.checkpoints.vocabularies import read_beside, write_beside
from bert_tf.errors import UserError
from bert_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK, check_vocabulary

CONFIG_FILE = "tokenizer_config.json"
TOKENIZER_FILE = "tokenizer.json"


def vocabulary(folder: Path) -> tuple[str, ...] | None:
    """The pieces in the order of their ids; None where the folder has none.

    Raises:
        UserError: they are not a BERT vocabulary.
    """
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
    """Whether the tokenizer lower-cases; None where no file says so.

    Raises:
        UserError: a file is not JSON.
    """
    if (folder / CONFIG_FILE).is_file():
        said = plain_json.read_object(folder / CONFIG_FILE, "tokenizer").get("do_lower_case")
        if isinstance(said, bool):
            return said
    if (folder / TOKENIZER_FILE).is_file():
        normalizer = plain_json.read_object(folder / TOKENIZER_FILE, "tokenizer").get("normalizer")
        said = normalizer.get("lowercase") if isinstance(normalizer, dict) else None
        if isinstance(said, bool):
            return said
    return None


def write(folder: Path, pieces: Sequence[str], lower_case: bool | None, max_length: int) -> None:
    """Writes vocab.txt, and tokenizer_config.json where the casing is known."""
    write_beside(folder, pieces)
    fields: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer",
        "model_max_length": max_length,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
        "unk_token": UNK,
        "sep_token": SEP,
        "pad_token": PAD,
        "cls_token": CLS,
        "mask_token": MASK,
    }
    if lower_case is not None:
        fields["do_lower_case"] = lower_case
    plain_json.write_object(folder / CONFIG_FILE, fields)
