"""Checkpoints of the Hugging Face Hub and of Kaggle, fetched by name and cached.

A name is "google-bert/bert-base-uncased". An address, "hf://google-bert/bert-base-uncased", is
never read as a path, and may have a revision: "hf://org/name@v1.0". The environment variable
HF_ENDPOINT chooses the Hub.

Only weights, configurations, vocabularies and the model card are fetched, those in the folders of
sentence-transformers' modules included. A folder without safetensors files gets the weights of
transformers' TensorFlow classes instead, and without these the weights of torch.

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
# Those of bert_tf, and the weights and the vocabulary of KerasHub's presets.
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
    """The cached folder of the checkpoint, which is fetched if it is not there yet.

    Args:
        address: a name or an address.

    Raises:
        UserError: `address` has another form, huggingface_hub or kagglehub is not installed, there
            is no such repository, or the Hub cannot be reached and nothing is cached.
    """
    if address.startswith(_KAGGLE):
        return _fetch_from_kaggle(address)
    match = _ADDRESS.fullmatch(address)
    if not match:
        raise UserError(f"{address} is not of the form hf://org/name or hf://org/name@revision")
    # The user may have meant a path.
    other = "" if is_address(address) else f"there is no file or folder {address}, and "
    purpose = f"{other}downloading {address} from the Hugging Face Hub"
    optional("huggingface_hub", "hub", purpose)
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
    except errors.GatedRepoError:
        raise UserError(
            f"{address} is a gated repository; request access on its page on the Hugging Face "
            "Hub, then log in with hf auth login"
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
    # The errors of its HTTP client, for example a cut connection, are no OSErrors.
    except (errors.HTTPError, errors.HFValidationError, OSError) as error:
        if is_disk_full(error):
            raise UserError(
                f"the disk is full while downloading {address}; free some space, or set HF_HOME to "
                "a folder on another disk"
            ) from None
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"{other}{address} cannot be downloaded ({first}); try again later"
        ) from None
    return folder


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
    # The library's errors have no common class.
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"{address} cannot be downloaded from Kaggle ({first}); check its spelling, your "
            "credentials (kaggle.json) and the network"
        ) from None
