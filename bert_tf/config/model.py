"""The sections `tokenizer`, `model` and `init`: what is trained, and from where."""

import dataclasses
from typing import Literal

from bert_tf.config.kinds import Count, FilePath, Positive, Share
from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class TokenizerConfig:
    """How text becomes tokens. What is null is as the checkpoint at `init.checkpoint` has it."""

    # The vocabulary, one piece per line.
    vocab: FilePath | None = None
    # Uncased models, the better ones for English, see text lower-cased and without accents. Where
    # neither this key nor a checkpoint says, a vocabulary with a capital letter is a cased one.
    lower_case: bool | None = None

    @property
    def settled_lower_case(self) -> bool:
        """`lower_case` of a run that has started, which decides it if it is null.

        Raises:
            UserError: it is null.
        """
        if self.lower_case is None:
            raise UserError("tokenizer.lower_case is not known; set it to true or false")
        return self.lower_case


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The sizes of a published model or of your own; null takes the preset's value.

    The names are those of bert_config.json; `bert_tf.EncoderConfig` says what they mean. The size
    of the vocabulary is not among them: the vocabulary file decides it.
    """

    # For example bert-base-uncased, bert-mini-uncased.
    preset: str | None = None
    hidden_size: Count | None = None
    num_hidden_layers: Count | None = None
    num_attention_heads: Count | None = None
    intermediate_size: Count | None = None
    hidden_act: Literal["gelu", "gelu_new"] | None = None
    hidden_dropout_prob: Share | None = None
    attention_probs_dropout_prob: Share | None = None
    max_position_embeddings: Count | None = None
    type_vocab_size: Count | None = None
    initializer_range: Positive | None = None
    layer_norm_eps: Positive | None = None
    attention: Literal["bidirectional", "left_to_right", "right_to_left", "side_by_side"] | None = (
        None
    )
    bilstm: bool | None = None

    def changes(self) -> dict[str, object]:
        """The sizes that are given, to be laid over those of the preset."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(ModelConfig)}
        return {k: v for k, v in values.items() if k != "preset" and v is not None}


@dataclasses.dataclass(frozen=True)
class InitConfig:
    """What the weights start from."""

    # A run folder, a checkpoint of any format or hf://org/name; null starts from random weights.
    checkpoint: FilePath | None = None
