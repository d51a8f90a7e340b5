"""Checkpoints of the Hugging Face Hub by name, cached.

A name is "google-bert/bert-base-uncased", or as an address "hf://google-bert/bert-base-uncased",
which is never taken for a path and may have a revision: "hf://org/name@v1.0". The Hub is the one
that the environment variable HF_ENDPOINT says.

Only plain files are fetched: weights, configuration and vocabulary. torch's file is, where there
is no safetensors one.
"""

import os
import re
from pathlib import Path

from bert_tf.checkpoints.weight_files import SAFETENSORS, TORCH
from bert_tf.errors import UserError
from bert_tf.extras import optional

_SCHEME = "hf://"
_NAME = r"(?:[\w.-]+/)?[\w.-]+"
_ADDRESS = re.compile(rf"(?:{_SCHEME})?({_NAME})(?:@([\w./-]+))?")
_PLAIN_FILES = [
    *("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"),
    "config_sentence_transformers.json",
]
_OWN_FILES = ["bert_tf.json", "bert_tf.safetensors"]


def is_address(path: str | os.PathLike) -> bool:
    """Whether `path` names a checkpoint on the Hub."""
    return str(path).startswith(_SCHEME)


def is_name(name: str) -> bool:
    """Whether `name`, which is no file or folder here, could be a checkpoint on the Hub."""
    return bool(re.fullmatch(_NAME, name)) and not name.startswith((".", "-"))


def fetch(address: str) -> Path:
    """The folder of the cache that holds the checkpoint, fetched first if it is not there yet.

    Args:
        address: a name or an address.

    Raises:
        UserError: `address` is not of this form, huggingface_hub is not installed, there is no
            such repository, or the Hub cannot be reached and nothing is cached.
    """
    match = _ADDRESS.fullmatch(address)
    if not match:
        raise UserError(f"{address} is not of the form hf://org/name or hf://org/name@revision")
    # A name that may have been meant as a path.
    other = "" if is_address(address) else f"there is no file or folder {address}, and "
    purpose = f"{other}downloading {address} from the Hugging Face Hub"
    optional("huggingface_hub", "hub", purpose)
    from huggingface_hub import errors, snapshot_download

    def get(*files: str) -> Path:
        patterns = [*_PLAIN_FILES, *_OWN_FILES, *files]
        return Path(snapshot_download(match[1], revision=match[2], allow_patterns=patterns))

    try:
        folder = get(SAFETENSORS, f"{SAFETENSORS}.index.json", "model-*-of-*.safetensors")
        if not any(folder.glob("model*.safetensors*")):
            folder = get(TORCH, f"{TORCH}.index.json", "pytorch_model-*-of-*.bin")
    except errors.GatedRepoError:
        raise UserError(
            f"{address} requires an agreement first; accept it on the Hub, then log in with "
            "hf auth login"
        ) from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        raise UserError(
            f"{other}{address} is not on the Hugging Face Hub; check its spelling"
        ) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise UserError(
            f"{other}{address} is not in the cache, and the Hugging Face Hub cannot be reached; "
            "connect to the network once, or give a folder"
        ) from None
    # What its HTTP client raises is no OSError: of a proxy, say, or of a connection that is cut.
    except (errors.HTTPError, errors.HFValidationError, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"{other}{address} cannot be downloaded ({first}); try again later"
        ) from None
    return folder
