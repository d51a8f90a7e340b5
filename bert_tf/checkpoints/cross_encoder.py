"""What sentence-transformers' `CrossEncoder` keeps besides the checkpoint of transformers.

Since version 6 it has a file of its own, config_sentence_transformers.json, since 4 a key of
config.json, and before that another key. All versions since 4 read the key of config.json.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import huggingface_tokenizer, plain_json

_FILE, _KIND = "config_sentence_transformers.json", "CrossEncoder"
_KEY, _OLD_KEY = "sentence_transformers", "sbert_ce_default_activation_function"
# Our names of activations -> torch's.
_ACTIVATIONS = {
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "identity": "torch.nn.modules.linear.Identity",
}


def settings(folder: Path, config: Mapping[str, Any], positions: int) -> dict[str, Any] | None:
    """The settings of a `Reranker`; None if the folder is not that of a cross-encoder.

    An activation that is not one of ours has torch's name.

    Args:
        folder: of the checkpoint.
        config: the content of its config.json.
        positions: the encoder's.

    Raises:
        UserError: a file is not JSON.
    """
    found = _activation(folder, config)
    if found is None:
        return None
    # torch.nn.Sigmoid is another name of torch.nn.modules.activation.Sigmoid.
    short = found.rpartition(".")[2].lower()
    ours = short if found.startswith("torch.nn.") and short in _ACTIVATIONS else found
    read = {"activation": ours or "sigmoid"}
    longest = huggingface_tokenizer.max_length(folder)
    return read if longest is None else read | {"max_length": min(longest, positions)}


def fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json has of the settings of a `Reranker`."""
    activation = settings.get("activation", "sigmoid")
    return {_KEY: {"activation_fn": _ACTIVATIONS[activation]}}


def _activation(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The name of the activation, "" if there is none; None if it is no cross-encoder."""
    file = folder / _FILE
    if file.is_file():
        kept = plain_json.read_object(file, "configuration")
        if kept.get("model_type") == _KIND:
            return str(kept.get("activation_fn") or "")
    if isinstance(config.get(_KEY), dict):
        return str(config[_KEY].get("activation_fn") or "")
    return str(config[_OLD_KEY] or "") if _OLD_KEY in config else None
