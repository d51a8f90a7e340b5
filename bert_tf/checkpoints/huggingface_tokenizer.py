"""The tokenizer's files in a Hugging Face folder: vocab.txt, tokenizer.json, tokenizer_config.json.

transformers 5 writes only tokenizer.json, older versions vocab.txt too. Every version opens its
BERT tokenizer from vocab.txt and tokenizer_config.json.
"""

import itertools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import keys, plain_json
from bert_tf.checkpoints.description import Content
from bert_tf.errors import UserError
from bert_tf.io.files import is_there
from bert_tf.io.vocabulary import (
    CLS,
    SEP,
    SPECIAL_TOKENS,
    TokenizerSettings,
    ids_of,
    pieces_of_model,
    read_beside,
)

CONFIG_FILE = "tokenizer_config.json"
TOKENIZER_FILE = "tokenizer.json"
ADDED_FILE = "added_tokens.json"
SPECIAL_FILE = "special_tokens_map.json"

# Python refuses to read a number with thousands of digits.
_MOST_DIGITS = 18
# transformers' default for the longest word, in characters.
_LONGEST_WORD = 100

# transformers writes a far larger number if there is no limit.
_NO_LENGTH = 10**9
_CHINESE = "tokenize_chinese_chars"
_CLEANING = ("do_lower_case", "strip_accents", _CHINESE)
_NAMED_TOKENS = ("bos_token", "eos_token", "additional_special_tokens", "extra_special_tokens")
# Classes that take every part of tokenizer.json as it is.
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")


def _template(*parts: str) -> list[dict[str, Any]]:
    """A template of tokenizer.json, from names with their segments, such as "A0" and "[SEP]1"."""
    kinds = ("SpecialToken" if part.startswith("[") else "Sequence" for part in parts)
    fields = ({"id": part[:-1], "type_id": int(part[-1])} for part in parts)
    return [{kind: each} for kind, each in zip(kinds, fields, strict=True)]


# What BERT's post-processors add to one text and to two.
_SINGLE = _template("[CLS]0", "A0", "[SEP]0")
_PAIR = [*_SINGLE, *_template("B1", "[SEP]1")]


class TokenizerFiles:
    """The tokenizer's files in `folder`; `notes` list the fields that are not read as they are."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._fields = {
            name: plain_json.read_if_there(folder / name, "tokenizer")
            for name in (CONFIG_FILE, SPECIAL_FILE, ADDED_FILE, TOKENIZER_FILE)
        }
        self._config, self._tokenizer = self._fields[CONFIG_FILE], self._fields[TOKENIZER_FILE]
        model = self._tokenizer.get("model")
        self._model = model if isinstance(model, dict) else {}
        self.notes: tuple[str, ...] = ()
        self._cleaning: dict[str, Any] = dict.fromkeys(_CLEANING)
        self._refusal: UserError | None = None
        try:
            self._check()
        except UserError as error:
            # The encoder can be used without this tokenizer.
            self._refusal = error
        self._cleaning |= {name: self._config[name] for name in _CLEANING if name in self._config}
        self._added = self._added_tokens()

    def vocabulary(self) -> tuple[str, ...] | None:
        """The pieces in the order of their ids; None if there is no vocabulary."""
        if self._refusal is not None:
            raise self._refusal
        pieces = read_beside(self._folder)
        path = self._folder / TOKENIZER_FILE
        if pieces is not None:
            return self._with_added(pieces, {*pieces})
        if not is_there(path):
            return None
        fields = self._tokenizer
        try:
            ids = dict(fields["model"]["vocab"])
            ids |= {token["content"]: token["id"] for token in fields.get("added_tokens", [])}
            pieces_at = {id: piece for piece, id in ids.items()}
            # A blank or repeated line of a vocab.txt is a gap in the ids.
            ordered = [pieces_at.get(id, "") for id in range(min(max(pieces_at), 2 * len(ids)) + 1)]
            whole = len(pieces_at) == len(ids) and {*pieces_at} <= {*range(len(ordered))}
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise UserError(f"{path} is not a WordPiece tokenizer with an id for every piece")
        pieces = pieces_of_model(ordered, f"vocabulary of {path}", "piece")
        return self._with_added(pieces, fields["model"]["vocab"])

    def lower_case(self) -> bool | None:
        """Whether the tokenizer lower-cases; None if no file says so."""
        value = self._cleaning["do_lower_case"]
        return value if isinstance(value, bool) else None

    def settings(self) -> dict[str, Any]:
        """The tokenizer's settings except its casing, in the form of `Description.tokenizer`."""
        # By default transformers leaves special tokens whole.
        is_text = self._config.get("split_special_tokens") is True
        found: dict[bool, list[str]] = {True: [], False: []}
        for token, each in self._added.items():
            special = each.get("special") is True
            if not (is_text and special):
                found[each.get("normalized", not special) is True].append(token)
        fields = {
            "special_tokens": "text" if is_text else "whole",
            "added_tokens": found[True],
            "exact_tokens": found[False],
            "longest_word": self._model.get("max_input_chars_per_word", _LONGEST_WORD),
            "normalizer": "huggingface",
        }
        for name, ours in (("strip_accents", "strip_accents"), (_CHINESE, "split_chinese")):
            if isinstance(self._cleaning[name], bool):
                fields[ours] = self._cleaning[name]
        return TokenizerSettings.from_dict(fields, str(self._folder)).besides_casing

    def max_length(self) -> int | None:
        """The most tokens of an input; None if no file says so."""
        value = self._config.get("model_max_length", self._config.get("max_len"))
        return value if type(value) is int and 0 < value < _NO_LENGTH else None

    def _check(self) -> None:
        for name, fields in self._fields.items():
            self._check_keys(name, fields)
        for _, _, fields in self._listed_tokens():
            self._check_keys(f"{TOKENIZER_FILE}: added_tokens", fields)
        self._check_keys(f"{TOKENIZER_FILE}: model", self._model)
        if "normalizer" in self._tokenizer:
            self._read_normalizer()
        if "pre_tokenizer" in self._tokenizer:
            kinds = {kind for kind, _ in self._steps("pre_tokenizer", "pretokenizers")}
            # Words end at spaces and at punctuation marks, which are words themselves.
            if "BertPreTokenizer" not in kinds and kinds != {"WhitespaceSplit", "Punctuation"}:
                raise self._refused("pre_tokenizer", "bert_tf cuts words as BertPreTokenizer does")
        if "post_processor" in self._tokenizer and not self._post_processor_is_berts():
            raise self._refused(
                "post_processor", "bert_tf sets [CLS] and [SEP] around texts as BERT does"
            )

    def _post_processor_is_berts(self) -> bool:
        post = self._tokenizer["post_processor"]
        if post is None:  # transformers' classes for BERT add their own one
            return self._config.get("tokenizer_class") not in _GENERIC
        if not isinstance(post, dict):
            return False
        if post.get("type") == "BertProcessing":
            ends = (post.get(name) for name in ("cls", "sep"))
            return [each[0] for each in ends if isinstance(each, list) and each] == [CLS, SEP]
        return (post.get("single"), post.get("pair")) == (_SINGLE, _PAIR)

    def _read_normalizer(self) -> None:
        """Finds the settings that a normalizer, or a sequence of normalizers, is equivalent to."""
        lowers = strips = splits = False
        form = ""  # the last normal form
        steps = self._steps("normalizer", "normalizers")
        for kind, step in steps:
            if kind == "BertNormalizer":
                lower, accents = step.get("lowercase") is True, step.get("strip_accents")
                if lower if accents is None else accents is True:
                    strips, form = True, "NFD"
                lowers |= lower
                splits |= step.get("handle_chinese_chars") is not False
            elif kind == "StripAccents" and form == "NFD":
                strips = True
            elif kind == "Lowercase":
                lowers = True
            elif kind != "Strip":
                form = kind
        if form != ("NFD" if strips else ""):
            raise self._refused(
                "normalizer", "bert_tf decomposes characters only to strip accents after that"
            )
        self._cleaning = dict(zip(_CLEANING, (lowers, strips, splits), strict=True))
        if strips == lowers:
            self._cleaning["strip_accents"] = None
        if not any(kind == "BertNormalizer" for kind, _ in steps):
            self.notes += (
                f"warning: {TOKENIZER_FILE}: its own normalizer keeps control characters, "
                "bert_tf's drops them",
            )

    def _steps(self, part: str, inner: str) -> list[tuple[str, dict[str, Any]]]:
        """The kinds and fields of the steps of a part of tokenizer.json, which may be nested."""
        steps, left = [], [self._tokenizer[part]]
        while left:
            each = left.pop(0)
            if each is None:
                continue
            kind = str(each.get("type")) if isinstance(each, dict) else ""
            if kind == "Sequence" and isinstance(each.get(inner), list):
                left = each[inner] + left
                continue
            self._check_keys(f"{TOKENIZER_FILE}: {part}", {kind: each})
            if (own := f"{TOKENIZER_FILE}: {kind}") in keys.TABLE:
                self._check_keys(own, each)
            steps.append((kind, each))
        return steps

    def _check_keys(self, name: str, fields: Mapping[str, Any]) -> None:
        found = keys.check(self._folder / name, fields, name).values()
        self.notes += tuple(each for each in found if each not in self.notes)

    def _refused(self, part: str, why: str) -> UserError:
        value = plain_json.shown(self._tokenizer[part])
        return UserError(f"{self._folder / TOKENIZER_FILE}: {part} is {value}; {why}")

    def _added_tokens(self) -> dict[str, dict[str, Any]]:
        """The tokens that were added to BERT's, in the order of their ids, with their fields."""
        found: dict[str, dict[str, Any]] = {}
        for token, id, each in self._listed_tokens():
            if isinstance(token, str) and type(id) is int and token not in SPECIAL_TOKENS:
                found[token] = found.get(token, {}) | each | {"id": id}
        found = dict(sorted(found.items(), key=lambda item: item[1]["id"]))
        # Further special tokens, which the files name without their ids.
        for file, key in itertools.product((CONFIG_FILE, SPECIAL_FILE), _NAMED_TOKENS):
            value = self._fields[file].get(key)
            if isinstance(value, dict) and "content" not in value:
                value = [*value.values()]
            for token in map(keys.plain, value if isinstance(value, list) else [value]):
                if isinstance(token, str) and token not in (*SPECIAL_TOKENS, ""):
                    found.setdefault(token, {"special": True})
        return found

    def _listed_tokens(self) -> list[tuple[Any, Any, dict[str, Any]]]:
        """The added tokens that the files list, each with its id and its fields."""
        tokens: list[tuple[Any, Any, dict[str, Any]]]
        tokens = [(token, id, {}) for token, id in self._fields[ADDED_FILE].items()]
        decoder = self._config.get("added_tokens_decoder")
        tokens += [
            (each.get("content"), int(id), each)
            for id, each in (decoder.items() if isinstance(decoder, dict) else ())
            if isinstance(each, dict) and id.isdecimal() and len(id) <= _MOST_DIGITS
        ]
        entries = self._tokenizer.get("added_tokens")
        return tokens + [
            (each.get("content"), each.get("id"), each)
            for each in (entries if isinstance(entries, list) else ())
            if isinstance(each, dict)
        ]

    def _with_added(self, pieces: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
        """The pieces, and the added tokens missing from them; `known` are WordPiece's pieces."""
        exact = self.settings().get("exact_tokens", ())
        for token, fields in self._added.items():
            id = fields.get("id")
            if token in exact and token in known and token.islower() and token.isalnum():
                raise UserError(
                    f"{self._folder}: the added token {token!r} with normalized false is also in "
                    "the vocabulary, and bert_tf would not find it in capitals; remove it from "
                    "the added tokens"
                )
            if id is None:
                pieces += () if token in pieces else (token,)
            elif id == len(pieces):
                pieces += (token,)
            elif not (0 <= id < len(pieces) and pieces[id] == token):
                raise UserError(
                    f"{self._folder}: the added token {token!r} has the id {id}, which another "
                    f"piece has, or which leaves a gap after the {len(pieces)} pieces of the "
                    "vocabulary; correct the id"
                )
        return pieces


def write(folder: Path, content: Content, max_length: int, tokenizer_class: str) -> None:
    """Writes vocab.txt, and tokenizer_config.json with the settings of the tokenizer."""
    content.write_vocabulary(folder)
    lower_case, tokenizer = content.description.lower_case, content.description.tokenizer
    fields: dict[str, Any] = {
        "tokenizer_class": tokenizer_class,
        "model_max_length": max_length,
        _CHINESE: tokenizer.get("split_chinese", True),
        "strip_accents": tokenizer.get("strip_accents"),
    }
    fields |= {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
    if lower_case is not None:
        fields["do_lower_case"] = lower_case
    added = dict.fromkeys(tokenizer.get("added_tokens", ()), True)
    added |= dict.fromkeys(tokenizer.get("exact_tokens", ()), False)
    if added:
        fields["added_tokens_decoder"] = {
            str(ids_of(content.vocabulary or ())[token]): {
                "content": token,
                "lstrip": False,
                "normalized": normalized,
                "rstrip": False,
                "single_word": False,
                "special": False,
            }
            for token, normalized in added.items()
        }
    plain_json.write(folder / CONFIG_FILE, fields)
