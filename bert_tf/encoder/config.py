"""The sizes of an encoder, under the names of google-research's `bert_config.json`."""

import dataclasses
import difflib
from typing import Any

from bert_tf.errors import UserError

# (layers, hidden size, heads) of the paper's models and of the small ones published with the code
# (Turc et al. 2019); the feed-forward layer is always four times as wide as the hidden size.
_SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
_VOCABULARIES = {"uncased": 30522, "cased": 28996, "chinese": 21128, "multilingual-cased": 119547}
_PUBLISHED = [
    *((size, "uncased") for size in _SIZES),
    ("base", "cased"),
    ("large", "cased"),
    ("base", "chinese"),
    ("base", "multilingual-cased"),
]
_PRESETS = {f"bert-{size}-{vocabulary}": (size, vocabulary) for size, vocabulary in _PUBLISHED}

# The name of a precision in configurations -> Keras's dtype policy.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}

ACTIVATIONS = ("gelu", "gelu_new")
# The activation of the pooler in each model of the family.
POOLERS = {"bert": "tanh", "distilbert": "relu", "electra": "gelu"}
ATTENTION_DIRECTIONS = ("bidirectional", "left_to_right", "right_to_left", "side_by_side")


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """Everything that decides an encoder's weights and arithmetic; the defaults are BERT-base.

    Attributes:
        vocab_size: number of word pieces.
        hidden_size: width H of every token's vector.
        num_hidden_layers: number of Transformer blocks.
        num_attention_heads: heads of each block; divides `hidden_size`.
        intermediate_size: width of the feed-forward layer.
        hidden_act: "gelu" is the exact erf form (as Hugging Face reads it), "gelu_new" the tanh
            form that google-research's code computes.
        hidden_dropout_prob: dropout on embeddings and on the output of both sublayers.
        attention_probs_dropout_prob: dropout on the attention probabilities.
        max_position_embeddings: the longest sequence.
        type_vocab_size: number of segments; 0 for DistilBERT, which has none.
        initializer_range: standard deviation of the truncated normal that weights start from.
        layer_norm_eps: added to the variance in every layer normalization.
        attention: "bidirectional", or for the paper's ablations (section 5.1) "left_to_right",
            "right_to_left", or "side_by_side": one encoder in each direction, both of these sizes,
            whose vectors are concatenated.
        bilstm: whether a bidirectional LSTM, as wide as its input, follows the last block (the same
            section).
        pools_first: whether a left-to-right model pools the first token, as transformers does, and
            not the last, the only one that has seen the whole row.
        masked_lm_head: the head that a masked language model has on this encoder: "bert", or
            "keras_hub", KerasHub's, which always has `gelu` and a layer normalization with an
            epsilon of 1e-5.
        model_type: "bert"; "distilbert" (Sanh et al. 2019) has no segments, and its pooler is
            followed by ReLU; "electra" (Clark et al. 2020) has embeddings of any width, its pooler
            is followed by GELU, and its masked language model always has `gelu`. The pooler of
            these two belongs to the heads that read it.
        embedding_size: width of ELECTRA's embeddings, which a linear layer projects to
            `hidden_size`; 0 is `hidden_size`, without that layer.

    Raises:
        UserError: a size is not positive, the heads do not divide the hidden size, a dropout rate
            is not in [0, 1), a BiLSTM would have an odd width, a name is unknown, or the model type
            has no such part.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    attention: str = "bidirectional"
    bilstm: bool = False
    pools_first: bool = False
    masked_lm_head: str = "bert"
    model_type: str = "bert"
    embedding_size: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("type_vocab_size", "embedding_size") else 1
            if field.type is int and value < least:
                raise UserError(f"{field.name} must be at least {least}, not {value}")
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.bilstm and self.output_size % 2:
            raise UserError(f"a BiLSTM requires an even hidden_size, not {self.hidden_size}")
        for rate in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, rate) < 1:
                raise UserError(f"{rate} must be in [0, 1), not {getattr(self, rate)}")
        _check_name("hidden_act", self.hidden_act, ACTIVATIONS)
        _check_name("attention", self.attention, ATTENTION_DIRECTIONS)
        _check_name("masked_lm_head", self.masked_lm_head, ("bert", "keras_hub"))
        _check_name("model_type", self.model_type, tuple(POOLERS))
        if (self.model_type == "distilbert") != (self.type_vocab_size == 0):
            raise UserError(
                f"type_vocab_size is {self.type_vocab_size}, but the model_type is "
                f"{self.model_type}; it must be 0 for distilbert, and above 0 for all others"
            )
        if self.model_type != "electra" and self.embedding_width != self.hidden_size:
            raise UserError(
                f"embedding_size is {self.embedding_size}, but the embeddings of a "
                f"{self.model_type} are as wide as hidden_size; only an electra projects them"
            )

    @property
    def output_size(self) -> int:
        """Width of the encoder's output vectors."""
        return self.hidden_size * (2 if self.attention == "side_by_side" else 1)

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings."""
        return self.embedding_size or self.hidden_size

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "EncoderConfig":
        """The sizes of a published model, for example "bert-base-uncased".

        Args:
            name: bert-{tiny,mini,small,medium,base,large}-uncased, bert-{base,large}-cased,
                bert-base-chinese or bert-base-multilingual-cased.
            **changes: fields that differ from the published ones.

        Raises:
            UserError: an unknown name, or changes that do not fit.
        """
        _check_name("model preset", name, tuple(_PRESETS))
        size, vocabulary = _PRESETS[name]
        layers, hidden_size, heads = _SIZES[size]
        published = {
            "vocab_size": _VOCABULARIES[vocabulary],
            "hidden_size": hidden_size,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden_size,
        }
        return cls(**published | changes)

    def check_length(self, name: str, length: int) -> None:
        """Raises UserError if a setting needs more tokens than there are positions."""
        longest = self.max_position_embeddings
        if length > longest:
            raise UserError(
                f"{name} {length} is longer than the model's {longest} positions; lower it to "
                f"{longest}"
            )

    def check_vocabulary(self, pieces: int) -> None:
        """Raises UserError if a tokenizer has more pieces than there are embeddings."""
        if pieces > self.vocab_size:
            raise UserError(
                f"the tokenizer has {pieces} pieces, but the model has only {self.vocab_size}; "
                "give the tokenizer that the model was trained with"
            )

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON and for Keras."""
        return dataclasses.asdict(self)


def _check_name(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
        raise UserError(f"unknown {what} {name!r}; {hint}")
