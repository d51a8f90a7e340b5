"""sentence-transformers' folders: a Hugging Face folder, and modules that pool tokens to a vector.

`modules.json` lists the modules, each with its class and its folder: Transformer, Pooling, any
number of Dense, and Normalize, in this order, as versions 2 to 6 write them. Version 6.2.0 opens
what bert_tf writes.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import (
    embedder,
    heads,
    huggingface,
    huggingface_tokenizer,
    huggingface_weights,
    keys,
    plain_json,
    tensors,
)
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import TRANSPOSED, rows_of
from bert_tf.checkpoints.description import Content, Description
from bert_tf.checkpoints.plain_json import shown
from bert_tf.errors import UserError
from bert_tf.io.files import is_there

MODULES_FILE = "modules.json"
CONFIG_FILE = huggingface.CROSS_ENCODER_FILE
READER = "sentence-transformers"

_TRANSFORMER_FILE, _MODULE_FILE = huggingface.TRANSFORMER_FILE, "config.json"
# The package of the modules in versions 2 to 5. Version 6 knows the name too.
_MODULES = "sentence_transformers.models."
_ORDER = ("Transformer", "Pooling", "Dense", "Normalize")
# Their names of poolings -> ours.
_POOLINGS = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weighted_mean",
    "lasttoken": "last_token",
}
# The keys of older versions -> today's names. The vectors were concatenated in this order.
_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

TABLE = dataclasses.replace(
    huggingface.TABLE,
    format="sentence_transformers",
    encoder=(
        *huggingface.TABLE.encoder,
        *rows_of(
            {f"dense_{n}": f"{n + 2}_Dense/linear." for n in range(embedder.MOST_DENSE)},
            TRANSPOSED,
            {"kernel": "weight"},
        ),
    ),
)


def is_one(folder: Path) -> bool:
    """Whether `folder` holds an embedder of sentence-transformers."""
    if not is_there(folder / MODULES_FILE):
        return False
    return _fields(folder / CONFIG_FILE).get("model_type", heads.EMBEDDER) == heads.EMBEDDER


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`."""
    (transformer, pooling, *dense), normalize, of_keys = _modules(folder)
    inner = huggingface.open_checkpoint(transformer)
    path, inner_path = folder / CONFIG_FILE, transformer / _TRANSFORMER_FILE
    config, fields = _fields(path), _fields(inner_path)
    for file, found in ((path, config), (inner_path, fields)):
        of_keys |= keys.check(file, found, file.name, f"{file.name} of {heads.EMBEDDER}")
    modality = _field(fields, "modality_config", dict, {}, inner_path)
    pooled = _field(modality, "text", dict, {}, inner_path).get("method_output_name")
    if pooled not in (None, "last_hidden_state"):
        raise UserError(
            f"{inner_path}: method_output_name is {shown(pooled)}; bert_tf supports only "
            "last_hidden_state"
        )
    lower_case, tokenizer = inner.description.lower_case, inner.description.tokenizer
    if _field(fields, "do_lower_case", bool, False, inner_path):
        if lower_case is False:  # the library lower-cases texts before its tokenizer
            tokenizer = {"strip_accents": False} | tokenizer
        lower_case = True
    prompts = _field(config, "prompts", dict, {}, path)
    settings: dict[str, Any] = {
        **_pooling(pooling / _MODULE_FILE, inner.encoder.output_size),
        "normalize": normalize,
        "prompts": {name: "" if text is None else text for name, text in prompts.items()},
        "default_prompt": _field(config, "default_prompt_name", str, None, path),
        "similarity_function": _field(config, "similarity_fn_name", str, "cosine", path),
        "max_length": _max_length(transformer, fields, inner.encoder.max_position_embeddings),
    }
    if (kept := _field(config, "truncate_dim", int, None, path)) is not None:
        settings["truncate_dim"] = kept
    try:
        embedder.prompts(settings["prompts"], settings["default_prompt"])
        embedder.similarity_function(settings["similarity_function"])
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    width = inner.encoder.output_size * len(embedder.poolings(settings["pooling"]))
    layers, weights = [], [inner.tensors]
    for number, each in enumerate(dense):
        layers.append(_dense(each / _MODULE_FILE, width))
        own = huggingface_weights.open_folder(each)
        weights.append(own.renamed({f"{number + 2}_Dense/{name}": name for name in own.shapes}))
        width = layers[-1]["units"]
    description = Description(
        _class_of_embedders(),
        {"dense": layers} if layers else {},
        inner.encoder,
        lower_case=lower_case,
        tokenizer=tokenizer,
        settings=settings,
    ).supplemented(config, path)
    named = tensors.joined(*weights)
    notes = (*inner.notes, *of_keys.values())
    return Checkpoint(folder, description, named, TABLE, inner.vocabulary_there, notes).check()


def write_content(folder: Path, content: Content) -> None:
    """Writes the checkpoint into the existing `folder`."""
    description, settings = content.description, content.description.settings
    if description.model != (ours := _class_of_embedders()):
        raise UserError(
            f"the format sentence_transformers can store only {ours}, not "
            f"{description.model}; choose another format, or save a {ours} with this encoder"
        )
    modes = embedder.poolings(settings["pooling"])
    if "pooled" in modes:
        raise UserError(
            "sentence-transformers has no module for the pooling 'pooled'; choose another pooling, "
            "or the format bert_tf"
        )
    own = {name: array for name, array in content.weights.items() if name.startswith("dense_")}
    encoder = {name: array for name, array in content.weights.items() if name not in own}
    inner = dataclasses.replace(description, model=heads.ENCODER, head={}, settings={})
    huggingface.write_content(folder, Content(encoder, inner, content.vocabulary))
    fields = {"max_seq_length": settings["max_length"], "do_lower_case": False}
    plain_json.write(folder / _TRANSFORMER_FILE, fields)
    modules = [("Transformer", "")]

    def add(kind: str, fields: Mapping[str, Any]) -> Path:
        """Writes the folder of the next module, with its configuration."""
        modules.append((kind, f"{len(modules)}_{kind}"))
        place = folder / modules[-1][1]
        place.mkdir()
        plain_json.write(place / _MODULE_FILE, fields)
        return place

    theirs = {ours: name for name, ours in _POOLINGS.items()}
    names = [theirs[mode] for mode in modes]
    width = description.encoder.output_size
    pooling = {"word_embedding_dimension": width, "include_prompt": settings["include_prompt"]}
    add("Pooling", pooling | {"pooling_mode": names[0] if len(names) == 1 else names})
    named, width = TABLE.write(own, description), width * len(modes)
    for layer in embedder.dense_layers(description.head.get("dense", ())):
        sizes = {"in_features": width, "out_features": layer["units"], "bias": layer["bias"]}
        activation = embedder.torch_activation(layer["activation"])
        place = add("Dense", sizes | {"activation_function": activation})
        prefix = f"{place.name}/"
        arrays = {n.removeprefix(prefix): a for n, a in named.items() if n.startswith(prefix)}
        tensors.save(place / huggingface_weights.SAFETENSORS, arrays, {"format": "pt"})
        width = layer["units"]
    if settings["normalize"]:
        add("Normalize", {})
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": _MODULES + kind}
        for number, (kind, path) in enumerate(modules)
    ]
    plain_json.write(folder / MODULES_FILE, listed)
    config = {
        "model_type": heads.EMBEDDER,
        "prompts": settings["prompts"],
        "default_prompt_name": settings["default_prompt"],
        "similarity_fn_name": settings["similarity_function"],
    }
    if "truncate_dim" in settings:
        config["truncate_dim"] = settings["truncate_dim"]
    plain_json.write(folder / CONFIG_FILE, config)


def _class_of_embedders() -> str:
    """The class of the models that this format can store."""
    known = heads.known().items()
    return next(model for model, head in known if head.sentence_transformers == heads.EMBEDDER)


def _fields(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} if there is no file, since the files depend on the version."""
    return plain_json.read_if_there(path, "module configuration")


def _field(fields: Mapping[str, Any], name: str, kind: type, default: Any, path: Path) -> Any:
    """One field, or `default` if it is null. Raises UserError if it is not of type `kind`."""
    value = fields.get(name)
    return default if value is None else plain_json.checked(path, name, value, kind)


def _modules(folder: Path) -> tuple[list[Path], bool, dict[str, str]]:
    """The folders of modules with weights or settings, whether vectors are normalized, and notes.

    The first folder is the transformer's, the second is the pooling's.
    """
    path = folder / MODULES_FILE
    kinds, folders, notes = list[str](), list[Path](), dict[str, str]()
    for entry in plain_json.read_object(path, "list of modules", list):
        fields = entry if isinstance(entry, dict) else {}
        place, kind = fields.get("path"), fields.get("type")
        if not isinstance(place, str) or not isinstance(kind, str):
            raise UserError(
                f"{path} is damaged: the entry {shown(entry)} does not name a path and a "
                "type; copy it again"
            )
        name = kind.rpartition(".")[2]
        if not kind.startswith("sentence_transformers.") or name not in _ORDER:
            raise UserError(
                f"{path} lists the module {shown(kind)}; bert_tf supports only {', '.join(_ORDER)}"
            )
        if plain_json.is_outside(place):
            raise UserError(f"{path} names a folder outside the checkpoint: {shown(place)}")
        notes |= keys.check(path, entry, MODULES_FILE)
        kinds.append(name)
        folders.append(folder / place)
        table, file = f"{name}/{_MODULE_FILE}", folder / place / _MODULE_FILE
        if table in keys.TABLE:
            notes |= keys.check(file, _fields(file), table)
    most = embedder.MOST_DENSE
    normalize = kinds[-1:] == ["Normalize"]
    dense = kinds[2 : len(kinds) - normalize]
    if kinds[:2] != ["Transformer", "Pooling"] or {*dense} - {"Dense"}:
        raise UserError(
            f"{path} lists {', '.join(kinds) or 'no module'}; bert_tf supports Transformer, "
            f"Pooling, up to {most} Dense and an optional Normalize, in this order"
        )
    if len(dense) > most:
        raise UserError(f"{path} lists {len(dense)} Dense modules; bert_tf supports at most {most}")
    return folders[: len(kinds) - normalize], normalize, notes


def _max_length(transformer: Path, fields: Mapping[str, Any], longest: int) -> int:
    """The most tokens of a text, which version 6 writes only to the tokenizer's file."""
    path = transformer / _TRANSFORMER_FILE
    length = _field(fields, "max_seq_length", int, None, path)
    if length is None:
        # If there is no limit, transformers writes 10**30, or 1e30 in old versions.
        found = _fields(transformer / huggingface_tokenizer.CONFIG_FILE).get("model_max_length")
        length = int(found) if isinstance(found, int | float) and 0 < found < longest else longest
    if length < 1:
        raise UserError(f"{path}: max_seq_length is {length}; it must be at least 1")
    return min(length, longest)


def _pooling(path: Path, width: int) -> dict[str, Any]:
    """The settings of a pooling module for vectors with `width` dimensions."""
    fields = plain_json.read_object(path, "pooling configuration")
    for name in ("word_embedding_dimension", "embedding_dimension"):
        if (found := _field(fields, name, int, width, path)) != width:
            raise UserError(
                f"{path}: {name} is {found}, but the encoder's vectors have {width} dimensions; "
                "copy both again"
            )
    modes = fields.get("pooling_mode")
    if modes is None:
        modes = [
            name for key, name in _POOLING_KEYS.items() if _field(fields, key, bool, False, path)
        ] or ["mean"]
    names = [modes] if isinstance(modes, str) else modes
    if not isinstance(names, list) or not all(isinstance(n, str) and n in _POOLINGS for n in names):
        raise UserError(
            f"{path}: pooling_mode is {shown(modes)}; it must be one or more of "
            f"{', '.join(_POOLINGS)}"
        )
    try:
        found = embedder.poolings([_POOLINGS[name] for name in names])
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    include_prompt = _field(fields, "include_prompt", bool, True, path)
    return {"pooling": found[0] if len(found) == 1 else [*found], "include_prompt": include_prompt}


def _dense(path: Path, width: int) -> dict[str, Any]:
    """A dense layer for vectors with `width` dimensions; see `embedder.dense_layers`."""
    fields = plain_json.read_object(path, "dense configuration")
    found = _field(fields, "in_features", int, width, path)
    if found != width:
        raise UserError(
            f"{path}: in_features is {found}, but the input vectors have {width} dimensions; copy "
            "the checkpoint again"
        )
    name = _field(fields, "activation_function", str, embedder.torch_activation("Tanh"), path)
    activation = name.rpartition(".")[2]
    if not name.startswith("torch.nn.") or activation not in embedder.ACTIVATIONS:
        raise UserError(
            f"{path}: unknown activation_function {shown(name)}; bert_tf supports "
            f"{', '.join(embedder.ACTIVATIONS)} of torch.nn"
        )
    units = _field(fields, "out_features", int, 0, path)
    if units < 1:
        raise UserError(f"{path}: out_features must be at least 1, not {units}; copy it again")
    bias = _field(fields, "bias", bool, True, path)
    return {"units": units, "activation": activation, "bias": bias}
