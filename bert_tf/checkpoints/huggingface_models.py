"""The models of BERT's family in transformers: their names for BERT's classes, weights and keys.

Everything else reads and writes BERT's names, which are those of `modeling_bert.py`. Sources:
`modeling_distilbert.py`, `modeling_electra.py` and their configurations in transformers 5.24.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

_CLASSIFIER, _CHOICE = "BertForSequenceClassification", "BertForMultipleChoice"
_QUESTIONS, _TAGS = "BertForQuestionAnswering", "BertForTokenClassification"
_CLASSES = ("BertModel", "BertForMaskedLM", _CLASSIFIER, _CHOICE, _QUESTIONS, _TAGS)
# BERT's keys that transformers also accepts in the configurations of other models.
_ALIASES = ("hidden_size", "num_attention_heads", "num_hidden_layers")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HubModel:
    """A model of the family. Its mappings lead from BERT's names to its own."""

    prefix: str  # of the encoder's weights in a model with a head
    classes: Mapping[str, str]
    weights: tuple[tuple[str, str], ...] = ()  # parts of names
    # Parts of the names of weights in one class only.
    heads: Mapping[str, tuple[tuple[str, str], ...]] = dataclasses.field(default_factory=dict)
    # "" stands for a key of config.json that the model does not have.
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Values of BERT's keys that this model's config.json may leave out.
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    dropout_key: str = "classifier_dropout"  # "" if heads have no dropout
    # BERT's class -> the key of its own head's dropout, and the default.
    dropouts: Mapping[str, tuple[str, float | None]] = dataclasses.field(default_factory=dict)
    tokenizer: str = "BertTokenizer"

    def bert_weight(self, name: str) -> str:
        """BERT's name of a weight."""
        name = name.removeprefix(self.prefix)
        for pairs in (self.weights, *self.heads.values()):
            for bert, own in pairs:
                name = name.replace(own, bert)
        return name

    def own_weight(self, name: str, architecture: str) -> str:
        """This model's name for the weight `name` of BERT's class `architecture`."""
        own = name
        for bert, part in (*self.weights, *self.heads.get(architecture, ())):
            own = own.replace(bert, part)
        # The pooler is a part of the encoder only in BERT.
        is_inner = own.startswith(("embeddings", "encoder.", "transformer.", "pooler."))
        return self.prefix + own if is_inner and architecture != "BertModel" else own

    def own_class(self, bert: str) -> str:
        """This model's class for BERT's class `bert`; "" if it has none. BERT returns `bert`."""
        return self.classes.get(bert, bert if self is MODELS["bert"] else "")

    def bert_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of config.json under BERT's keys, with the defaults."""
        own = {bert: fields[name] for bert, name in self.keys.items() if name in fields}
        known = {name for name in fields if name not in self.keys or name in _ALIASES}
        read = {name: fields[name] for name in known}
        return {**self.defaults, **read, **own}


MODELS = {
    "bert": HubModel(
        prefix="bert.",
        classes={},
        keys={"embedding_size": ""},
        defaults={"hidden_act": "gelu"},
        dropouts={_QUESTIONS: ("", None)},
    ),
    "distilbert": HubModel(
        prefix="distilbert.",
        classes={name: f"Distil{name}" for name in _CLASSES},
        weights=(
            ("encoder.layer.", "transformer.layer."),
            ("attention.self.query.", "attention.q_lin."),
            ("attention.self.key.", "attention.k_lin."),
            ("attention.self.value.", "attention.v_lin."),
            ("attention.output.dense.", "attention.out_lin."),
            ("attention.output.LayerNorm.", "sa_layer_norm."),
            ("intermediate.dense.", "ffn.lin1."),
            ("output.dense.", "ffn.lin2."),
            ("output.LayerNorm.", "output_layer_norm."),
            ("pooler.dense.", "pre_classifier."),
            ("cls.predictions.transform.dense.", "vocab_transform."),
            ("cls.predictions.transform.LayerNorm.", "vocab_layer_norm."),
            ("cls.predictions.bias", "vocab_projector.bias"),
            ("cls.predictions.decoder.", "vocab_projector."),
        ),
        keys={
            "hidden_size": "dim",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "intermediate_size": "hidden_dim",
            "hidden_dropout_prob": "dropout",
            "attention_probs_dropout_prob": "attention_dropout",
            "hidden_act": "activation",
            "type_vocab_size": "",
            "embedding_size": "",
            "layer_norm_eps": "",
            "is_decoder": "",
        },
        defaults={"num_hidden_layers": 6, "hidden_act": "gelu", "type_vocab_size": 0},
        dropout_key="",
        dropouts={
            _CLASSIFIER: ("seq_classif_dropout", 0.2),
            _CHOICE: ("seq_classif_dropout", 0.2),
            _QUESTIONS: ("qa_dropout", 0.1),
        },
        tokenizer="DistilBertTokenizer",
    ),
    "electra": HubModel(
        prefix="electra.",
        classes={
            **{name: name.replace("Bert", "Electra") for name in _CLASSES},
            "BertLMHeadModel": "ElectraForCausalLM",
        },
        weights=(
            ("cls.predictions.transform.", "generator_predictions."),
            ("cls.predictions.bias", "generator_lm_head.bias"),
            ("cls.predictions.decoder.", "generator_lm_head."),
        ),
        heads={
            _CLASSIFIER: (
                ("classifier.", "classifier.out_proj."),
                ("pooler.dense.", "classifier.dense."),
            ),
            _CHOICE: (("pooler.dense.", "sequence_summary.summary."),),
        },
        defaults={
            "hidden_act": "gelu",
            "embedding_size": 128,
            "hidden_size": 256,
            "num_attention_heads": 4,
            "intermediate_size": 1024,
        },
        dropouts={_QUESTIONS: ("", None), _CHOICE: ("summary_last_dropout", 0.1)},
    ),
}
