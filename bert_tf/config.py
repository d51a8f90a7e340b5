"""What a run does, as typed and frozen configuration read from YAML.

Every key that a file may set is a field here, with its meaning and its default. Defaults are those
of the paper or of google-research's scripts (run_pretraining.py, run_classifier.py,
create_pretraining_data.py), called "the reference" below, unless the comment says why not.
"""

import dataclasses
import itertools
import os
import typing
from collections.abc import Sequence
from typing import Annotated, Literal

from bert_tf import yaml_files
from bert_tf.errors import UserError
from bert_tf.typed import NOT_A_KEY, PATH, Above, AtLeast, Between, build, fit, plain
from bert_tf.yaml_files import Tree

FilePath = Annotated[str, PATH]
Count = Annotated[int, AtLeast(1)]
Share = Annotated[float, Between(0, 1)]


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Where the examples are and how they are to be read."""

    # A folder; for pre-training also a file, a glob, or a list of these.
    path: FilePath | tuple[FilePath, ...]
    # How the files are written, such as tsv; `bert_tf.data` tells what it reads.
    format: str

    # Fine-tuning. Names of the files in the folder; null is train.tsv, and so on, by the format.
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    # Columns of one text, or of a first and a second one.
    text_columns: tuple[str, ...] = ("text",)
    # Column of what is to be predicted.
    label_column: str = "label"

    # Pre-training. Share of the documents held out to evaluate on.
    dev_fraction: Share = 0.05
    # Share of the tokens to predict (paper, section 3.1).
    masked_lm_prob: Share = 0.15
    # Most predictions in a sequence; null is what masked_lm_prob asks for at full length. The
    # reference's 20 is that for 128 tokens, and has to be changed by hand for others.
    max_predictions_per_seq: Count | None = None
    # Share of the sequences that are shorter, so that fine-tuning on short texts finds them known.
    short_seq_prob: Share = 0.1
    # Predict whether the second segment follows the first (paper, section 3.1).
    next_sentence: bool = True
    # Mask all pieces of a word or none. Off, as in the paper.
    whole_word_masking: bool = False

    def __post_init__(self) -> None:
        if len(self.text_columns) > 2:
            raise UserError(
                f"data.text_columns names {len(self.text_columns)} columns; name one or two"
            )


@dataclasses.dataclass(frozen=True)
class TokenizerConfig:
    """How text becomes tokens."""

    # The vocabulary, one piece per line.
    vocab: FilePath
    # Uncased models, the better ones for English, see text lower-cased and without accents.
    lower_case: bool = True


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """A published model's sizes, or one's own; null is what the preset says.

    The names are those of bert_config.json, and `bert_tf.EncoderConfig` tells what they mean. The
    size of the vocabulary is not among them: the vocabulary file decides it.
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
    initializer_range: Annotated[float, Above(0)] | None = None
    layer_norm_eps: Annotated[float, Above(0)] | None = None
    attention: Literal["bidirectional", "left_to_right", "right_to_left"] | None = None

    def changes(self) -> dict[str, object]:
        """The sizes that are given, to be laid over those of the preset."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in values.items() if k != "preset" and v is not None}


@dataclasses.dataclass(frozen=True)
class InitConfig:
    """What the weights start from."""

    # A run folder or a checkpoint; null starts from random weights.
    checkpoint: FilePath | None = None


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How the weights are trained. In a file any of these may be a list: then all are tried."""

    # How long: exactly one of the two. The paper pre-trains for 1,000,000 steps and fine-tunes for
    # 3 or 4 epochs.
    steps: Count | None = None
    epochs: Annotated[float, Above(0)] | None = None
    # Sequences in one step, over all devices (the reference's; the paper fine-tunes with 16 or 32).
    batch_size: Count = 32
    # The highest rate, at the end of the warm-up (the reference's, for fine-tuning and
    # pre-training; the paper pre-trains with 1e-4).
    learning_rate: Annotated[float, Above(0)] = 5e-5
    # Share of the steps in which the rate rises to that.
    warmup_fraction: Share = 0.1
    # Weights shrink by this times the rate in every step; LayerNorm and biases don't.
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    # Longest gradient, all weights taken together; null does not clip.
    gradient_clip: Annotated[float, Above(0)] | None = 1.0
    # Decides initial weights, order of the data, masks and dropout.
    seed: Annotated[int, Between(0, 2**31 - 1)] = 0
    # bfloat16 computes in half the memory, and faster on hardware made for it.
    precision: Literal["float32", "bfloat16"] = "float32"
    # Tokens in a sequence, [CLS] and [SEP] included; longer texts are cut.
    max_length: Annotated[int, AtLeast(3)] = 128
    # A checkpoint every so many steps (the reference's) and how many of them stay.
    checkpoint_steps: Count = 1000
    checkpoints_kept: Count = 3
    # Evaluate every so many steps; null: with every checkpoint in pre-training, and after every
    # epoch in fine-tuning.
    eval_steps: Count | None = None
    # A line in the log every so many steps.
    log_steps: Count = 100
    # Which devices share the work.
    strategy: Literal["one_device"] = "one_device"

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            both = "both are set" if self.steps else "neither is set"
            raise UserError(f"train needs either train.steps or train.epochs, but {both}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run."""

    # pretraining, or one of `bert_tf.tasks`.
    task: Literal["pretraining", "classification"]
    data: DataConfig
    tokenizer: TokenizerConfig
    model: ModelConfig = ModelConfig()
    init: InitConfig = InitConfig()
    train: TrainConfig
    # The keys of `train` that are lists in the file, with their values: a search over all of their
    # combinations. `train` itself holds the first value of each.
    search: dict[str, tuple] = dataclasses.field(default_factory=dict, metadata=NOT_A_KEY)

    def __post_init__(self) -> None:
        if self.task != "pretraining" and isinstance(self.data.path, tuple):
            raise UserError(f"data.path is a list; {self.task} reads one folder")
        sizes = {"hidden_size", "num_hidden_layers", "num_attention_heads"}
        if not (self.model.preset or self.init.checkpoint or sizes <= set(self.model.changes())):
            raise UserError(
                "which model? set model.preset (such as bert-base-uncased), init.checkpoint, or "
                "model.hidden_size, model.num_hidden_layers and model.num_attention_heads"
            )

    def trials(self) -> list["RunConfig"]:
        """A search as the single runs it is made of, the last key changing fastest.

        A configuration without a search is its own only trial.
        """
        combinations = itertools.product(*self.search.values())
        trains = [
            dataclasses.replace(self.train, **dict(zip(self.search, values, strict=True)))
            for values in combinations
        ]
        return [dataclasses.replace(self, train=train, search={}) for train in trains]

    def to_yaml(self) -> str:
        """The configuration with every default written out; `load` makes the same of it."""
        values = plain(self)
        values["train"] |= {key: list(each) for key, each in self.search.items()}
        return yaml_files.write(values)


def load(path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration in a YAML file, and in the files it inherits from by `base: other.yaml`.

    Paths start from the folder of the file that names them or, if nothing is there, from the
    working folder; they come out absolute. What is found in neither stays as it is written.

    Args:
        path: the YAML file.
        overrides: settings laid over it, as in ["train.seed=1", "train.learning_rate=[3e-5,5e-5]"].

    Raises:
        UserError: one line with the file, the line and the key that is wrong.
    """
    tree = yaml_files.read(path)
    for setting in overrides:
        tree = yaml_files.read_setting(setting).over(tree)
    tree, lists = _without_lists(tree)
    config = build(RunConfig, tree)
    hints = typing.get_type_hints(TrainConfig, include_extras=True)
    search = {}
    for key, values in lists.items():
        keys = ("train", key)
        search[key] = tuple(fit(value, hints[key], keys, tree.place(keys)) for value in values)
    return dataclasses.replace(config, search=search)


def difference(old: RunConfig, new: RunConfig) -> list[str]:
    """The keys, such as "train.seed", whose values are not the same in both."""
    before, after = _flat(old), _flat(new)
    return [key for key in before if before[key] != after[key]]


def _flat(config: RunConfig) -> dict[str, object]:
    """Every key with its value, or with its values where they are searched."""
    values: dict[str, object] = {"task": config.task}
    for section in ("data", "tokenizer", "model", "init", "train"):
        for key, value in vars(getattr(config, section)).items():
            values[f"{section}.{key}"] = value
    return values | {f"train.{key}": each for key, each in config.search.items()}


def _without_lists(tree: Tree) -> tuple[Tree, dict[str, list]]:
    """The tree with the first value of every list under `train`, and these lists."""
    train = tree.values.get("train")
    if not isinstance(train, dict):
        return tree, {}
    lists = {key: value for key, value in train.items() if isinstance(value, list)}
    for key, values in lists.items():
        if not values:
            raise UserError(f"{tree.place(('train', key))}: train.{key} is an empty list")
    firsts = {key: values[0] for key, values in lists.items()}
    return Tree(tree.values | {"train": train | firsts}, tree.places), lists
