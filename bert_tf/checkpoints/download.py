"""Checkpoints of the Hugging Face Hub and of Kaggle, fetched by name and cached.

A name is "google-bert/bert-base-uncased". An address, "hf://google-bert/bert-base-uncased", is
never read as a path, and may have a revision: "hf://org/name@v1.0". The environment variable
HF_ENDPOINT chooses the Hub.

Only weights, configurations, vocabularies and the model card are fetched. A folder without
safetensors files gets the weights of transformers' TensorFlow classes, or else those of torch.

An address on Kaggle is "kaggle://owner/model/framework/variation", with "/3" at its end for a
version. The library kagglehub fetches it, with the user's credentials.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from bert_tf.checkpoints import keys
from bert_tf.checkpoints.huggingface_weights import SAFETENSORS, TENSORFLOW, TORCH
from bert_tf.dependencies import optional
from bert_tf.errors import UserError
from bert_tf.io.refusals import is_disk_full

_SCHEME, _KAGGLE = "hf://", "kaggle://"
_HANDLE = re.compile(rf"{_KAGGLE}([\w-]+(?:/[\w.-]+){{3}}(?:/[1-9]\d*)?)", re.ASCII)
_NAME = r"(?:[\w.-]+/)?[\w.-]+"
_ADDRESS = re.compile(rf"(?:{_SCHEME})?({_NAME})(?:@([\w./-]+))?")
_PLAIN_FILES = ["README.md", "vocab.txt", *keys.files()]
# The files of bert_tf, and the weights and the vocabulary of KerasHub's presets.
_OWN_FILES = [
    *("bert_tf.json", "bert_tf.safetensors", "model.weights.h5", "task.weights.h5"),
    "assets/tokenizer/vocabulary.txt",
]
# The folders of sentence-transformers' modules, such as 1_Pooling, and those that have weights.
_FOLDERS, _WITH_WEIGHTS = "[0-9]*_*", ("0_Transformer/", "[0-9]*_Dense/")


def is_address(path: str | os.PathLike) -> bool:
    """Whether `path` names a checkpoint on the Hub or on Kaggle."""
    return str(path).startswith((_SCHEME, _KAGGLE))


def is_name(name: str) -> bool:
    """Whether `name`, which is not a local file or folder, may be a checkpoint on the Hub."""
    return bool(re.fullmatch(_NAME, name)) and not name.startswith((".", "-"))


def fetch(address: str) -> Path:
    """The cached folder of the checkpoint, which is fetched if it is not there yet."""
    if address.startswith(_KAGGLE):
        return _fetch_from_kaggle(address)
    match = _ADDRESS.fullmatch(address)
    if not match:
        raise UserError(f"{address} is not of the form hf://org/name or hf://org/name@revision")
    # The user may have meant a path.
    other = "" if is_address(address) else f"there is no file or folder {address}, and "
    optional("huggingface_hub", "hub", f"{other}downloading {address} from the Hugging Face Hub")
    from huggingface_hub import errors, snapshot_download

    def get(*files: str) -> Path:
        of_modules = [f"{_FOLDERS}/{each}" for each in _PLAIN_FILES]
        patterns = [*_PLAIN_FILES, *_OWN_FILES, *of_modules, *files]
        return Path(snapshot_download(match[1], revision=match[2], allow_patterns=patterns))

    def weights(places: Iterable[str], name: str, shards: str) -> list[str]:
        return [place + file for place in places for file in (name, f"{name}.index.json", shards)]

    try:
        folder = get(*weights(("", *_WITH_WEIGHTS), SAFETENSORS, "model-*-of-*.safetensors"))
        places = {f"{each.name}/": each for p in _WITH_WEIGHTS for each in folder.glob(p)}
        # If the transformer has a folder, there are no weights in the root.
        if _WITH_WEIGHTS[0] not in places:
            places[""] = folder
        without = [p for p, each in places.items() if not any(each.glob("model*.safetensors*"))]
        if without:
            folder = get(*weights(without, TENSORFLOW, "tf_model-*-of-*.h5"))
        without = [p for p in without if not any(places[p].glob("tf_model*.h5*"))]
        if without:
            folder = get(*weights(without, TORCH, "pytorch_model-*-of-*.bin"))
        return folder
    except errors.GatedRepoError:
        problem = (
            f"{address} is a gated repository; request access on its page on the Hugging Face "
            "Hub, then log in with hf auth login"
        )
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        problem = f"{other}{address} is not on the Hugging Face Hub; check its spelling"
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        problem = (
            f"{other}{address} is not in the cache, and the Hugging Face Hub cannot be reached; "
            "connect to the network once, or give a folder"
        )
    # The errors of the Hub's HTTP client, such as a cut connection, are not OSErrors.
    except (errors.HTTPError, errors.HFValidationError, OSError) as error:
        problem = f"{other}{address} cannot be downloaded ({_reason(error)}); try again later"
        if is_disk_full(error):
            problem = (
                f"the disk is full while downloading {address}; free some space, or set HF_HOME to "
                "a folder on another disk"
            )
    raise UserError(problem)


def _fetch_from_kaggle(address: str) -> Path:
    match = _HANDLE.fullmatch(address)
    if not match:
        raise UserError(
            f"{address} is not of the form kaggle://owner/model/framework/variation, with /version "
            "at its end or not"
        )
    kagglehub = optional("kagglehub", "kaggle", f"downloading {address} from Kaggle")
    try:
        return Path(kagglehub.model_download(match[1]))
    except Exception as error:  # the library's errors have no common class
        raise UserError(
            f"{address} cannot be downloaded from Kaggle ({_reason(error)}); check its spelling, "
            "your credentials (kaggle.json) and the network"
        ) from None


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
