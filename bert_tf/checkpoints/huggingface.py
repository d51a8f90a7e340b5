"""Hugging Face's folders: config.json, and the weights of `huggingface_weights`.

The names are those of `transformers/models/bert/modeling_bert.py`, without the "bert." that the
encoder's names begin with in a model with a head. `huggingface_models` has other models' names.
The weights of torch's `Linear` are [output, input]. transformers ignores keys of config.json that
it does not know.

A `CrossEncoder` of sentence-transformers is such a folder too. Its activation is in a file of its
own since version 6; versions 4 and 5 write a key of config.json, older versions another key of it.
All versions since 4 read the key of versions 4 and 5.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import (
    correspondence,
    embedder,
    google,
    heads,
    huggingface_tokenizer,
    huggingface_weights,
    keys,
    plain_json,
    tensors,
)
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import SAME, TRANSPOSED, UNMAPPED, Row, Table, rows_of
from bert_tf.checkpoints.description import EXTRA_KEY, Content, Description, encoder_config
from bert_tf.checkpoints.huggingface_models import MODELS, HubModel
from bert_tf.checkpoints.huggingface_tokenizer import TokenizerFiles
from bert_tf.checkpoints.plain_json import shown
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import ids_of

CONFIG_FILE = "config.json"
READER = "transformers"

_NAMES = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}
_PARTS = _NAMES | {"output_weights": "weight", "output_bias": "bias"}


def _row(of_google: Row) -> Row:
    """A weight with transformers' names, which are made from those of google-research's code."""

    def renamed(name: str) -> str:
        # The tables of embeddings are modules of torch, whose weights are called "weight".
        *layers, part = name.removeprefix("bert/").replace("layer_", "layer/").split("/")
        return ".".join((*layers, _PARTS.get(part, f"{part}.weight")))

    layout = TRANSPOSED if of_google.ours.endswith("/kernel") else SAME
    return Row(of_google.ours, tuple(map(renamed, of_google.theirs)), layout)


TABLE = Table(
    "huggingface",
    encoder=(
        *map(_row, google.TABLE.encoder),
        *rows_of({"encoder/embeddings/projection": "embeddings_project."}, TRANSPOSED, _NAMES),
    ),
    pretraining=tuple(map(_row, google.TABLE.pretraining)),
    kernel=TRANSPOSED,
    names=_NAMES,
)

# transformers' classes without a head, with both heads of pre-training, and with only the first.
_BARE, _PRETRAINING = "BertModel", "BertForPreTraining"
_MASKED, _CAUSAL = "BertForMaskedLM", "BertLMHeadModel"
_POOLER_BIAS = "pooler.dense.bias"
# Fields of our encoders that are not keys of config.json.
_NO_KEYS = ("attention", "pools_first", "masked_lm_head")

# Names of the activation in config.json -> ours.
_ACTIVATIONS = {
    "gelu_python": "gelu",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_python_tanh": "gelu_new",
}
# Names of weights in old versions -> today's.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# Tensors that repeat another one, or are not weights.
_REPEATED = ("embeddings.position_ids", "cls.predictions.decoder.weight")
_DECODER_BIAS, _OUTPUT_BIAS = "cls.predictions.decoder.bias", "cls.predictions.bias"

# A cross-encoder's own files, and its keys in config.json.
CROSS_ENCODER_FILE = "config_sentence_transformers.json"
TRANSFORMER_FILE = "sentence_bert_config.json"
_KEY, _OLD_KEY = "sentence_transformers", "sbert_ce_default_activation_function"
# Our names of its activations -> torch's.
_SCORES = {"sigmoid": "Sigmoid", "identity": "Identity"}


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`."""
    path = folder / CONFIG_FILE
    fields = plain_json.read_object(path, "model configuration")
    model_type = str(fields.get("model_type", "bert"))
    if model_type not in MODELS:
        raise UserError(
            f"{path}: model_type is {shown(model_type)}; bert_tf reads only {', '.join(MODELS)}"
        )
    hub = MODELS[model_type]
    tables = (CONFIG_FILE, f"{CONFIG_FILE} of {model_type}")
    of_keys = keys.check(path, fields, *tables)
    weights = _weights(folder, hub)
    encoder = _encoder(fields, hub, weights, path)
    files = TokenizerFiles(folder)
    found, settings = _heads(fields, hub, weights), dict[str, Any]()
    if 1 in found.values():  # a cross-encoder has one output
        settings, more = _cross_encoder(folder, fields, files, encoder)
        of_keys |= more
    if found or _architecture_in(fields, hub) == _BARE:
        reader = _reader(next(iter(found), ""))
        dropout = fields.get(*hub.dropouts.get(reader, (hub.dropout_key, None)))
        model, head = heads.chosen(
            found,
            problem=str(fields.get("problem_type") or ""),
            library=heads.CROSS_ENCODER if settings else "",
            dropout=float(dropout) if isinstance(dropout, int | float) else None,
        )
        if (of_head := f"{CONFIG_FILE} of {hub.own_class(reader)}") in keys.TABLE:
            of_keys |= keys.check(path, fields, *tables, of_head)
    else:
        model, head = TABLE.model_in(weights)
    if model != heads.PRETRAINER:
        of_keys.pop("tie_word_embeddings", None)
    if not heads.of(model).sentence_transformers:
        # Heads on tokens read a text in windows. No file states their length.
        longest = files.max_length() if heads.of(model).pools else None
        most = encoder.max_position_embeddings
        settings = {} if longest is None else {"max_length": min(longest, most)}
    description = Description(
        model,
        head,
        encoder,
        lower_case=files.lower_case(),
        labels=_labels(fields, head.get("num_classes", 0), path),
        tokenizer=files.settings(),
        settings=settings,
    ).supplemented(fields, path)
    notes = (*of_keys.values(), *files.notes, *_doubts(fields, hub, model, weights, path))
    return Checkpoint(folder, description, weights, TABLE, files.vocabulary, notes).check()


def write_content(folder: Path, content: Content) -> None:
    """Writes the checkpoint into the existing `folder`."""
    description, vocabulary = content.description, content.vocabulary
    hub = MODELS[description.encoder.model_type]
    architecture = architecture_of(description, hub)
    named = TABLE.write(content.weights, description)
    own = {n.removeprefix(UNMAPPED): named.pop(n) for n in list(named) if n.startswith(UNMAPPED)}
    head = heads.of(description.model)
    is_bert = hub is MODELS["bert"]
    has_pooler = is_bert if architecture in (_BARE, _PRETRAINING) else head.pools
    there = {"next_sentence": is_bert, "encoder/pooler": has_pooler}
    for name, row in TABLE.rows(description.model, 0).items():
        # transformers' class does not have this layer.
        if not there.get(name.rpartition("/")[0], True) and row.theirs[0] in named:
            own[name] = row.read(named.pop)
    named = {hub.own_weight(name, architecture): array for name, array in named.items()}
    # Some versions of transformers refuse files without this format.
    tensors.save(folder / huggingface_weights.SAFETENSORS, named, {"format": "pt"})
    correspondence.save_own(folder, own)
    plain_json.write(folder / CONFIG_FILE, _config(description, architecture, vocabulary))
    if vocabulary is not None:
        longest = description.encoder.max_position_embeddings
        if head.sentence_transformers == heads.CROSS_ENCODER:
            longest = description.settings.get("max_length", longest)
        huggingface_tokenizer.write(folder, content, longest, hub.tokenizer)


def _weights(folder: Path, hub: HubModel) -> Tensors:
    """The tensors under BERT's current names, and our own with the prefix "bert_tf/"."""
    found = huggingface_weights.open_folder(folder)
    names = {}
    for original in found.shapes:
        name = hub.bert_weight(original)
        for old, new in _OLD_NAMES.items():
            name = name.replace(old, new)
        names[original if name in names else name] = original
    if _OUTPUT_BIAS not in names and _DECODER_BIAS in names:
        names[_OUTPUT_BIAS] = names[_DECODER_BIAS]
    for name in (*_REPEATED, _DECODER_BIAS):
        names.pop(name, None)
    return correspondence.with_own(folder, found.renamed(names))


def _encoder(
    fields: Mapping[str, Any], hub: HubModel, weights: Tensors, path: Path
) -> EncoderConfig:
    found = {k: value for k, value in hub.bert_fields(fields).items() if k not in _NO_KEYS}
    if found.get("embedding_size") == found.get("hidden_size"):
        found.pop("embedding_size", None)
    if isinstance(found["hidden_act"], str):
        found["hidden_act"] = _ACTIVATIONS.get(found["hidden_act"], found["hidden_act"])
    if found.get("is_decoder") is True:
        found["attention"] = "left_to_right"
        found["pools_first"] = _POOLER_BIAS in weights.shapes
    return encoder_config(found, path)


def _architecture_in(fields: Mapping[str, Any], hub: HubModel) -> str:
    """BERT's name for the transformers class that config.json names; "" if it names none."""
    named = fields.get("architectures") or [""]
    name = str(named[0]) if isinstance(named, list) else ""
    return next((bert for bert, own in hub.classes.items() if own == name), name)


def _doubts(
    fields: Mapping[str, Any], hub: HubModel, model: str, weights: Tensors, path: Path
) -> tuple[str, ...]:
    """A note if config.json does not name exactly the transformers class that fits `model`."""
    names = fields.get("architectures")
    if not isinstance(names or [], list) or not all(isinstance(each, str) for each in names or ()):
        raise UserError(
            f"{path}: architectures is {shown(names)}; it must be a list with the name of a class, "
            f"such as {hub.own_class(_BARE)}"
        )
    if any(name.startswith("discriminator_predictions.") for name in weights.shapes):
        return (
            "it is the discriminator of an ELECTRA, which bert_tf reads as an encoder, without the "
            "head that detects replaced tokens",
        )
    without_place = {heads.ENCODER: [_BARE], heads.PRETRAINER: [_PRETRAINING, _MASKED, _CAUSAL]}
    # The fields that bert_tf wrote under its own key say which model it is.
    named = names in [[hub.own_class(each)] for each in without_place.get(model, [_reader(model)])]
    if named or "architectures" not in fields or EXTRA_KEY in fields:
        return ()
    return (
        f"warning: architectures is {shown(names)} in {CONFIG_FILE}; by its weights it is opened "
        f"as {model}",
    )


def _reader(model: str) -> str:
    """The BERT class of transformers with the head of `model`; "" if there is none."""
    place = heads.of(model).places.get(TABLE.format)
    return place.reader if place else ""


def _heads(fields: Mapping[str, Any], hub: HubModel, weights: Tensors) -> dict[str, int]:
    """The classes of models that may have the task head in `weights`; see `Table.heads_in`."""
    found, named = TABLE.heads_in(weights), _architecture_in(fields, hub)
    if _OUTPUT_BIAS in weights.shapes and named in (_PRETRAINING, _MASKED, _CAUSAL):
        return {}
    readers = {model: _reader(model) for model in found}
    if named not in readers.values():  # the weights decide
        if _OUTPUT_BIAS in weights.shapes or named == _BARE:
            return {}
        pooled = _POOLER_BIAS in weights.shapes  # only heads on texts have a pooler
        fitting = [model for model in found if heads.of(model).pools == pooled] or [*found]
        named = readers[fitting[0]] if fitting else ""
    return {model: outputs for model, outputs in found.items() if readers[model] == named}


def _labels(fields: Mapping[str, Any], classes: int, path: Path) -> tuple[str, ...]:
    """The names of the classes; () if transformers only numbered them."""
    names = fields.get("id2label")
    if names is None or not classes:
        return ()
    found = [names.get(str(n)) for n in range(classes)] if isinstance(names, dict) else [None]
    if not all(isinstance(each, str | int) for each in found) or len(names) != classes:
        raise UserError(
            f"{path}: id2label is {shown(names)}; it must have a text for each of the {classes} "
            "classes of the weights, and for no other; correct it"
        )
    labels = tuple(map(str, found))
    ids = fields.get("label2id") or {}
    if not isinstance(ids, dict) or any(
        str(ids.get(label, number)) != str(number) for number, label in enumerate(labels)
    ):
        raise UserError(
            f"{path}: label2id is {shown(ids)}, which contradicts id2label; correct one of them"
        )
    return () if labels == _numbered(classes) else labels


def _numbered(classes: int) -> tuple[str, ...]:
    """The labels that transformers gives to classes without names."""
    return tuple(f"LABEL_{number}" for number in range(classes))


def architecture_of(description: Description, hub: HubModel) -> str:
    """BERT's name of the class of transformers for a model; `_BARE` if there is none."""
    named = _reader(description.model)
    if heads.MASKED_LM in heads.of(description.model).pretraining:
        causal = description.encoder.attention == "left_to_right"
        named = _CAUSAL if causal and hub.own_class(_CAUSAL) else _MASKED
        if description.head.get("next_sentence") and hub.own_class(_PRETRAINING):
            named = _PRETRAINING
    return named if hub.own_class(named) else _BARE


def _config(
    description: Description, architecture: str, vocabulary: tuple[str, ...] | None
) -> dict[str, Any]:
    encoder = description.encoder
    hub, fields = MODELS[encoder.model_type], encoder.to_dict()
    fields |= {"is_decoder": encoder.attention == "left_to_right"}
    fields |= {"embedding_size": encoder.embedding_width}
    names = {**dict.fromkeys(_NO_KEYS, ""), **hub.keys}
    fields = {names.get(name, name): value for name, value in fields.items()}
    fields.pop("", None)
    fields["architectures"] = [hub.own_class(architecture)]
    fields["pad_token_id"] = ids_of(vocabulary)["[PAD]"] if vocabulary else 0
    key, _ = hub.dropouts.get(architecture, (hub.dropout_key, None))
    if key:
        dropout = description.head.get("dropout")
        is_needed = dropout is None and key != "classifier_dropout"
        fields[key] = encoder.hidden_dropout_prob if is_needed else dropout
    head = heads.of(description.model)
    if classes := head.outputs or description.head.get("num_classes"):
        labels = description.labels or _numbered(classes)
        fields["id2label"] = {str(number): label for number, label in enumerate(labels)}
        fields["label2id"] = {label: number for number, label in enumerate(labels)}
    if head.problem:
        fields["problem_type"] = head.problem
    if head.sentence_transformers == heads.CROSS_ENCODER:
        activation = _SCORES[description.settings.get("activation", "sigmoid")]
        fields[_KEY] = {"activation_fn": embedder.torch_activation(activation)}
    return dict(sorted(fields.items()))


def _cross_encoder(
    folder: Path, config: Mapping[str, Any], files: TokenizerFiles, encoder: EncoderConfig
) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of a cross-encoder, and notes; both are {} if the folder holds none."""
    found = _activation(folder, config)
    if found is None:
        return {}, {}
    notes: dict[str, str] = {}
    lengths = [files.max_length(), encoder.max_position_embeddings]
    for name in (CROSS_ENCODER_FILE, TRANSFORMER_FILE):
        path = folder / name
        fields = plain_json.read_if_there(path, "configuration")
        notes |= keys.check(path, fields, name, f"{name} of {heads.CROSS_ENCODER}")
        lengths.append(fields.get("max_seq_length"))
    # torch.nn.Sigmoid is another name of torch.nn.modules.activation.Sigmoid. An activation that
    # bert_tf does not have keeps torch's name.
    short = found.rpartition(".")[2].lower()
    ours = short if found.startswith("torch.nn.") and short in _SCORES else found
    longest = min(each for each in lengths if type(each) is int and each > 0)
    return {"activation": ours or "sigmoid", "max_length": longest}, notes


def _activation(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The name of a cross-encoder's activation, "" if there is none; None for other models."""
    kept = plain_json.read_if_there(folder / CROSS_ENCODER_FILE, "configuration")
    if kept.get("model_type") == heads.CROSS_ENCODER:
        return str(kept.get("activation_fn") or "")
    if isinstance(config.get(_KEY), dict):
        return str(config[_KEY].get("activation_fn") or "")
    return str(config[_OLD_KEY] or "") if _OLD_KEY in config else None
