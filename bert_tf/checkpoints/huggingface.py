"""Hugging Face's folders: config.json, and the weights of `weight_files`.

Names: `transformers/models/bert/modeling_bert.py`, without the "bert." that stands before the
encoder's where there is a head. A torch `Linear` keeps its weight as [output, input]. A key of
config.json that transformers does not know is carried along and never looked at.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints import (
    cross_encoder,
    huggingface_tokenizer,
    plain_json,
    tensors,
    weight_files,
)
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import TRANSPOSED, UNMAPPED, Row, Table, rows_of, text_heads
from bert_tf.checkpoints.description import ENCODER, Description, classifier_or_regressor
from bert_tf.checkpoints.sizes import encoder_config
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError

CONFIG_FILE = "config.json"
# Our weights that transformers has no place for.
OWN_WEIGHTS_FILE = "bert_tf.safetensors"
READER = "transformers"

_LAYER = "encoder.layer.{n}."
_NAMES = {"kernel": "weight", "gamma": "weight", "beta": "bias"}


def _rows(layers: Mapping[str, str | tuple[str, ...]]) -> tuple[Row, ...]:
    return rows_of(layers, TRANSPOSED, _NAMES)


_MASKED_LM = (
    *_rows(
        {
            "masked_lm/transform": "cls.predictions.transform.dense.",
            "masked_lm/layer_norm": "cls.predictions.transform.LayerNorm.",
        }
    ),
    Row("masked_lm/output_bias", ("cls.predictions.bias",)),
)
_NEXT_SENTENCE = _rows({"next_sentence": "cls.seq_relationship."})
_CLASSIFIER = _rows({"classifier": "classifier."})
TABLE = Table(
    encoder=(
        *(
            Row(f"encoder/embeddings/{name}", (f"embeddings.{name}.weight",))
            for name in ("word_embeddings", "position_embeddings", "token_type_embeddings")
        ),
        *_rows(
            {
                "encoder/embeddings/layer_norm": "embeddings.LayerNorm.",
                "encoder/layer_{n}/attention/query_key_value": (
                    f"{_LAYER}attention.self.query.",
                    f"{_LAYER}attention.self.key.",
                    f"{_LAYER}attention.self.value.",
                ),
                "encoder/layer_{n}/attention/output": f"{_LAYER}attention.output.dense.",
                "encoder/layer_{n}/attention_layer_norm": f"{_LAYER}attention.output.LayerNorm.",
                "encoder/layer_{n}/intermediate": f"{_LAYER}intermediate.dense.",
                "encoder/layer_{n}/output": f"{_LAYER}output.dense.",
                "encoder/layer_{n}/output_layer_norm": f"{_LAYER}output.LayerNorm.",
                "encoder/pooler": "pooler.dense.",
            }
        ),
    ),
    heads={
        "PreTrainer": (*_MASKED_LM, *_NEXT_SENTENCE),
        "MaskedLM": _MASKED_LM,
        "NextSentence": _NEXT_SENTENCE,
        **text_heads(_CLASSIFIER),
        "TokenClassifier": _CLASSIFIER,
        "QuestionAnswerer": _rows({"span": "qa_outputs."}),
        "MultipleChoice": _rows({"choice": "classifier."}),
    },
)

# The classes of transformers -> ours.
_CLASSES = {
    "BertModel": ENCODER,
    "BertForPreTraining": "PreTrainer",
    "BertForMaskedLM": "PreTrainer",
    "BertLMHeadModel": "PreTrainer",
    "BertForNextSentencePrediction": "NextSentence",
    "BertForSequenceClassification": "TextClassifier",
    "BertForTokenClassification": "TokenClassifier",
    "BertForQuestionAnswering": "QuestionAnswerer",
    "BertForMultipleChoice": "MultipleChoice",
}
# A tensor of each head -> the head's class, for configurations that do not name it. Without a
# pooler, a classifier is a token classifier.
_HEADS = {
    "cls.predictions.bias": "PreTrainer",
    "cls.seq_relationship.bias": "NextSentence",
    "qa_outputs.bias": "QuestionAnswerer",
    "classifier.bias": "TextClassifier",
}
_POOLER_BIAS = "pooler.dense.bias"
_MULTI_LABEL = "multi_label_classification"
# What the classifier of transformers is, where it does not choose one of several classes. None: the
# configuration does not say.
_PROBLEMS = {
    "TextRegressor": "regression",
    "MultiLabelClassifier": _MULTI_LABEL,
    "Reranker": None,
}
_WITHOUT_POOLER = (
    "BertForMaskedLM",
    "BertLMHeadModel",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
)

# Names of the activation in config.json -> ours.
_ACTIVATIONS = {
    "gelu_python": "gelu",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_python_tanh": "gelu_new",
}
# Old names of weights -> those of today.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# What is written twice, or is no weight.
_REPEATED = ("embeddings.position_ids", "cls.predictions.decoder.weight")
_DECODER_BIAS, _OUTPUT_BIAS = "cls.predictions.decoder.bias", "cls.predictions.bias"


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`.

    Raises:
        UserError: a file is missing or damaged, it is of another architecture, or the
            configuration does not fit the weights.
    """
    path = folder / CONFIG_FILE
    fields = plain_json.read_object(path, "model configuration")
    if fields.get("model_type", "bert") != "bert":
        raise UserError(
            f"{path} describes a {fields['model_type']} model, but bert_tf reads only BERT models"
        )
    if fields.get("position_embedding_type", "absolute") != "absolute":
        other = fields["position_embedding_type"]
        raise UserError(
            f"{path}: position_embedding_type is {other}; bert_tf supports only absolute"
        )
    weights = _weights(folder)
    model, head = _model(fields, weights)
    notes = huggingface_tokenizer.differences(folder)
    if model in ("TextClassifier", "TextRegressor") and fields.get("problem_type") == _MULTI_LABEL:
        # Also of one label only, which may be given or not.
        classes = weights.shapes["classifier.bias"][0]
        model, head = "MultiLabelClassifier", {"num_classes": classes, "dropout": head["dropout"]}
    encoder, settings = _encoder(fields, path), None
    if model == "TextRegressor":
        settings = cross_encoder.settings(folder, fields, encoder.max_position_embeddings)
        model = model if settings is None else "Reranker"
    if fields.get("tie_word_embeddings") is False and model == "PreTrainer":
        notes += (
            "warning: its separate output matrix is ignored; the word embeddings are used instead",
        )
    description = Description(
        model,
        head,
        encoder,
        lower_case=huggingface_tokenizer.lower_case(folder),
        labels=_labels(fields, head.get("num_classes", 0), path),
        settings=settings or {},
    )
    return Checkpoint(
        folder,
        description.supplemented(fields, path),
        weights,
        TABLE,
        lambda: huggingface_tokenizer.vocabulary(folder),
        notes,
    ).check()


def write_weights(
    folder: Path,
    weights: Mapping[str, np.ndarray],
    description: Description,
    vocabulary: tuple[str, ...] | None,
) -> None:
    """Writes the checkpoint into the existing `folder`."""
    architecture = _architecture(description)
    named = TABLE.write(weights, description)
    own = {n.removeprefix(UNMAPPED): named.pop(n) for n in list(named) if n.startswith(UNMAPPED)}
    if architecture in _WITHOUT_POOLER:
        for part in ("kernel", "bias"):
            row = TABLE.rows(description.model, 0)[f"encoder/pooler/{part}"]
            if row.theirs[0] in named:
                own[row.ours] = row.read(named.pop)
    encoder = ("embeddings.", "encoder.", "pooler.")
    prefix = "" if architecture == "BertModel" else "bert."
    named = {(prefix + n if n.startswith(encoder) else n): array for n, array in named.items()}
    # transformers refused files that do not say where they come from, in some of its versions.
    tensors.save(folder / weight_files.SAFETENSORS, named, {"format": "pt"})
    if own:
        tensors.save(folder / OWN_WEIGHTS_FILE, own)
    plain_json.write_object(folder / CONFIG_FILE, _config(description, architecture, vocabulary))
    if vocabulary is not None:
        longest = description.encoder.max_position_embeddings
        if description.model == "Reranker":
            longest = description.settings.get("max_length", longest)
        huggingface_tokenizer.write(folder, vocabulary, description.lower_case, longest)


def _weights(folder: Path) -> Tensors:
    """The tensors of the folder under today's names, and our own with the prefix "bert_tf/"."""
    found = weight_files.open_folder(folder)
    names = {}
    for original in found.shapes:
        name = original.removeprefix("bert.")
        for old, new in _OLD_NAMES.items():
            name = name.replace(old, new)
        names[name] = original
    if _OUTPUT_BIAS not in names and _DECODER_BIAS in names:
        names[_OUTPUT_BIAS] = names[_DECODER_BIAS]
    for name in (*_REPEATED, _DECODER_BIAS):
        names.pop(name, None)
    found = found.renamed(names)
    if (folder / OWN_WEIGHTS_FILE).is_file():
        own = tensors.open_file(folder / OWN_WEIGHTS_FILE)
        found = tensors.joined(found, own.renamed({UNMAPPED + name: name for name in own.shapes}))
    return found


def _encoder(fields: Mapping[str, Any], path: Path) -> EncoderConfig:
    """The encoder's sizes."""
    found = {"hidden_act": "gelu"} | {k: v for k, v in fields.items() if k != "attention"}
    if isinstance(found["hidden_act"], str):
        found["hidden_act"] = _ACTIVATIONS.get(found["hidden_act"], found["hidden_act"])
    if fields.get("is_decoder") is True:
        found["attention"] = "left_to_right"
    return encoder_config(found, path)


def _model(fields: Mapping[str, Any], weights: Tensors) -> tuple[str, dict[str, Any]]:
    """Our class of the model, and its head's arguments."""
    shapes = weights.shapes
    architectures = fields.get("architectures") or [""]
    model = _CLASSES.get(str(architectures[0])) if isinstance(architectures, list) else None
    # Nameless, a class that is not of transformers, or one whose head is not among the weights.
    mark = next((name for name, head in _HEADS.items() if head == model), "classifier.bias")
    if model is None or (model != ENCODER and mark not in shapes):
        model = next((_HEADS[name] for name in _HEADS if name in shapes), ENCODER)
        if model == "TextClassifier" and _POOLER_BIAS not in shapes:
            model = "TokenClassifier"
    dropout = fields.get("classifier_dropout")
    dropout = float(dropout) if isinstance(dropout, int | float) else None
    classes = (shapes.get("classifier.bias") or (0,))[0]
    if model == "TextClassifier":
        return classifier_or_regressor(classes, dropout)
    heads: dict[str, dict[str, Any]] = {
        ENCODER: {},
        "NextSentence": {},
        "PreTrainer": {"next_sentence": "cls.seq_relationship.bias" in shapes},
        "TokenClassifier": {"num_classes": classes, "dropout": dropout},
        "QuestionAnswerer": {},
        "MultipleChoice": {"dropout": dropout},
    }
    return model, heads[model]


def _labels(fields: Mapping[str, Any], classes: int, path: Path) -> tuple[str, ...]:
    """The names of the classes; empty where transformers only numbered them."""
    names = fields.get("id2label")
    if names is None or not classes:
        return ()
    try:
        labels = tuple(str(names[str(number)]) for number in range(classes))
    except (KeyError, TypeError):
        raise UserError(
            f"{path}: id2label does not name all {classes} classes of the weights; copy the "
            "checkpoint again"
        ) from None
    return () if labels == _numbered(classes) else labels


def _numbered(classes: int) -> tuple[str, ...]:
    """What transformers calls classes that have no names."""
    return tuple(f"LABEL_{number}" for number in range(classes))


def _architecture(description: Description) -> str:
    """The class of transformers that a model is for; BertModel where there is none."""
    if description.model in ("PreTrainer", "MaskedLM") and not description.head.get(
        "next_sentence"
    ):
        causal = description.encoder.attention == "left_to_right"
        return "BertLMHeadModel" if causal else "BertForMaskedLM"
    # Transformers has one class for TextClassifier and all of `_PROBLEMS`, and `problem_type`
    # distinguishes them.
    model = "TextClassifier" if description.model in _PROBLEMS else description.model
    return next((c for c, ours in _CLASSES.items() if ours == model), "BertModel")


def _config(
    description: Description, architecture: str, vocabulary: tuple[str, ...] | None
) -> dict[str, Any]:
    """The fields of config.json."""
    fields = description.encoder.to_dict()
    causal = fields.pop("attention") == "left_to_right"
    fields |= {
        "architectures": [architecture],
        "model_type": "bert",
        "is_decoder": causal,
        "pad_token_id": vocabulary.index("[PAD]") if vocabulary else 0,
        "classifier_dropout": description.head.get("dropout"),
    }
    has_one = description.model in ("TextRegressor", "Reranker")
    classes = 1 if has_one else description.head.get("num_classes")
    if classes:
        labels = description.labels or _numbered(classes)
        fields["id2label"] = {str(number): label for number, label in enumerate(labels)}
        fields["label2id"] = {label: number for number, label in enumerate(labels)}
    if problem := _PROBLEMS.get(description.model):
        fields["problem_type"] = problem
    if description.model == "Reranker":
        fields |= cross_encoder.fields(description.settings)
    return dict(sorted(fields.items()))
