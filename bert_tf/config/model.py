"""The sections `tokenizer`, `model` and `init`: what is trained, and from where."""

from collections.abc import Mapping
from typing import Any, Literal

from bert_tf.config.section import Count, FilePath, Positive, Section, Share
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import TokenizerSettings

LONG_TEXT = ("long_text", "window_pooling", "stride", "max_windows")  # settings of long texts
LongText = Literal["truncate", "head_and_tail", "windows"]
WindowPooling = Literal["mean", "max", "attention"]
Attention = Literal["bidirectional", "left_to_right", "right_to_left", "side_by_side"]


class TokenizerConfig(Section):
    """How text becomes tokens. null takes the setting of the checkpoint at `init.checkpoint`."""

    vocab: FilePath | None = None
    """The vocabulary file, one piece per line; null takes that of the checkpoint."""
    lower_case: bool | None = None
    """Whether text is lower-cased and stripped of accents, as for uncased models. null takes the
    checkpoint's setting. If no checkpoint has one, a vocabulary with capital letters or accents, in
    any script, is a cased one."""

    strip_accents: bool | None = None
    """Whether accents are removed. null takes the checkpoint's setting, or else the
    value of `lower_case`."""
    split_chinese: bool | None = None
    """Whether each Chinese character is a word of its own, as in BERT (the default)."""
    special_tokens: Literal["text", "whole"] | None = None
    """Whether `[MASK]`, `[SEP]` and the others inside a text are plain `text`, as in BERT's own
    tokenizer (the default), or stay `whole`, as in transformers."""
    added_tokens: list[str] | None = None
    """Further pieces of the vocabulary that stay whole in a text."""
    exact_tokens: list[str] | None = None
    """As `added_tokens`, with capitals and accents as they are written here."""
    normalizer: Literal["google", "huggingface"] | None = None
    """The rules for Unicode characters: those of google-research/bert (`google`, the default), or
    those of Hugging Face's tokenizers. They differ for few characters."""
    longest_word: Count | None = None
    """Characters of the longest word that is cut into pieces (default: 200); a longer one is
    `[UNK]`."""

    @property
    def settings(self) -> TokenizerSettings:
        """The settings of a run that has started; the start decides `lower_case` if it is null."""
        if self.lower_case is None:
            raise UserError(
                "tokenizer.lower_case cannot be derived from the vocabulary; set it to true or "
                "false"
            )
        given = self.model_dump(exclude={"vocab"}, exclude_none=True)
        return TokenizerSettings.from_dict(given, "the section tokenizer")


class ModelConfig(Section):
    """The sizes of a published model or of your own; null takes the preset's value."""

    preset: str | None = None
    """A published model whose sizes to take, such as `bert-base-uncased` or `bert-mini-uncased`."""
    hidden_size: Count | None = None
    """Width of the encoder."""
    num_hidden_layers: Count | None = None
    """Number of blocks of the encoder."""
    num_attention_heads: Count | None = None
    """Attention heads of each block."""
    intermediate_size: Count | None = None
    """Width inside the feed-forward layers; without a preset, four times hidden_size."""
    hidden_act: Literal["gelu", "gelu_new"] | None = None
    """`gelu`, or `gelu_new`, its approximation by tanh."""
    hidden_dropout_prob: Share | None = None
    """Dropout after the embeddings, attention and feed-forward layers."""
    attention_probs_dropout_prob: Share | None = None
    """Dropout on the attention probabilities."""
    max_position_embeddings: Count | None = None
    """Maximum length of a sequence, in tokens."""
    type_vocab_size: Count | None = None
    """Number of segment types."""
    initializer_range: Positive | None = None
    """Standard deviation of the initial weights."""
    layer_norm_eps: Positive | None = None
    """Added to the variance in LayerNorm."""
    attention: Attention | None = None
    """Which tokens a token attends to: all of them, those before it, or those after it.
    `side_by_side` is one encoder of each direction."""
    bilstm: bool | None = None
    """Put a BiLSTM on top of the encoder (paper, table 5)."""

    def changes(self) -> dict[str, object]:
        """The sizes that are set; they override those of the preset."""
        sizes = ModelConfig.model_fields.keys() - {"preset"}
        return self.model_dump(include=set(sizes), exclude_none=True)


class LongTextModel(ModelConfig):
    """Sizes as in `ModelConfig`, and how texts longer than train.max_length are read."""

    long_text: LongText | None = None
    """`truncate` reads the start of a text with more tokens than train.max_length, `head_and_tail`
    its first and last tokens, and `windows` all of it, in overlapping windows of that length. null
    is the initial checkpoint's value if that is a model of the same task, and otherwise `truncate`.
    """
    stride: Count | None = None
    """Pieces from the start of a window to that of the next; null is half of train.max_length."""
    max_windows: Count | None = None
    """The most windows of a text that are read; null reads all."""

    def long_texts(self, initial: Mapping[str, Any]) -> dict[str, Any]:
        """These settings as arguments of a model, where `initial` are those of the checkpoint."""
        given = self.model_dump(include=set(LONG_TEXT), exclude_none=True)
        kept = {} if self.long_text else {n: initial[n] for n in LONG_TEXT if n in initial}
        return kept | given


class PooledWindowsModel(LongTextModel):
    """As `LongTextModel`, and how the vectors of windows become one."""

    window_pooling: WindowPooling | None = None
    """How the vectors of a text's windows become one: `mean` (the default), `max`, or `attention`,
    a mean whose weights are learned."""


class InitConfig(Section):
    """What the weights start from."""

    checkpoint: FilePath | None = None
    """A run folder, a checkpoint of any format, or a name on the Hugging Face Hub as
    `hf://org/name`; null starts from random weights."""
