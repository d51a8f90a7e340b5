"""The section `train`: how the weights are trained. A list of values for a key is a search."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, model_validator

from bert_tf.config.imported import Imported, ImportedName
from bert_tf.config.section import (
    PLACED,
    Count,
    Length,
    Natural,
    Positive,
    Rate,
    Section,
    Seed,
    Share,
    Weight,
)

# Keys that all runs of a search share, since a process can have only one value of each.
NOT_SEARCHED = ("deterministic", "strategy", "tpu")
LISTS = ("callbacks", "metrics")  # keys whose values are lists themselves
# Keys that only our own optimizers read, and the keys of the learning rate with the variables by
# which a schedule can read them.
_OF_OURS = ("bias_correction", "adam_epsilon", "weight_decay", "skip_nonfinite", "layer_decay")
_OF_RATE = {"learning_rate": "$learning_rate", "warmup_fraction": "$warmup_steps"}
_OF_RATE["decay_after_warmup"] = "nothing"


class SearchConfig(Section):
    """A search with Optuna, instead of a grid."""

    trials: Count = 20
    """Number of trials, of all workers together. Raise it to go on with a finished search."""
    storage: Annotated[str, Field(min_length=1), PLACED] | None = None
    """Where Optuna keeps the trials: the URL of a database, such as `sqlite:///trials.db`, or the
    path of a journal, a file that several machines can share. Relative paths start from the working
    directory. Workers with the same storage and configuration share the trials; each has an --out
    of its own. null is `search.db` in the run folder."""
    seed: Seed = 0
    """Seed of the settings that are tried."""
    prune: bool = True
    """End a trial early if its metric on the dev data is below the median of the earlier trials
    after as many evaluations. The first five trials are never ended."""


class Range(Section):
    """Numbers from `low` to `high`, of which a search tries some."""

    low: int | float
    high: int | float
    log: bool = False
    """Try small numbers as often as large ones: 1e-5 to 1e-4 as often as 1e-4 to 1e-3."""
    step: int | Positive | None = None
    """Distance between numbers to try; null is 1 for whole numbers, any distance for others."""

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; correct them")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("log requires that low is above 0 and that there is no step")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ValueError(f"step {self.step:g} does not fit between low and high; correct it")
        return self


class TrainConfig(Section):
    """What pre-training and fine-tuning share."""

    steps: Count | None = None
    """How many steps to train; set this or epochs. The paper pre-trains for 1,000,000 steps."""
    epochs: Positive | None = None
    """How many epochs to train; set this or steps. The paper fine-tunes for 2, 3 or 4 epochs."""
    batch_size: Count = 32
    """Sequences in one step, over all devices. The default is that of google-research/bert; the
    paper fine-tunes with 16 or 32."""
    accumulation_steps: Count = 1
    """Number of parts that each batch is divided into, to save memory. The results stay the same,
    except for the random draws of dropout. An embedder then encodes each text twice, so that the
    loss is still that of the whole batch."""
    rematerialize: bool = False
    """Keep only the input of each block for the backward pass and compute the rest again, to save
    memory. The results stay the same; a step takes about a third longer."""
    learning_rate: Positive = 5e-5
    """The highest learning rate, reached at the end of the warm-up. The default is that of
    google-research/bert for pre-training and fine-tuning; the paper pre-trains with 1e-4."""
    warmup_fraction: Share = 0.1
    """Share of the steps in which the learning rate rises to learning_rate. After that it falls to
    0."""
    decay_after_warmup: bool = False
    """Start the linear decay at the end of the warm-up, as transformers does. google-research/bert
    computes the decay from step 0: with a warm-up of 10 %, the rate drops to 0.9 of learning_rate
    there."""
    schedule: Imported | ImportedName | None = None
    """A schedule of Keras or another package, instead of the linear warm-up and decay."""
    optimizer: Literal["adamw", "lamb"] | Imported | ImportedName = "adamw"
    """`adamw`, `lamb` for batches of thousands of sequences (You et al. 2020), or an optimizer of
    Keras or another package. The latter gets the run's learning rate and gradient_clip, and
    everything else from its arguments; LayerNorm and biases do not decay."""
    callbacks: tuple[Imported | ImportedName, ...] | None = None
    """Callbacks of Keras or another package, such as those of a tracker of experiments."""
    bias_correction: bool = False
    """Correct the moments of `adamw` for starting at zero, as PyTorch does. google-research/bert
    does not: there, the first thousand updates are larger than learning_rate implies."""
    adam_epsilon: Positive = 1e-6
    """Added to the root of the second moment. The default is that of google-research/bert;
    PyTorch's is 1e-8."""
    weight_decay: Weight = 0.01
    """In every step, weights shrink by this times the learning rate. LayerNorm and biases do not.
    """
    gradient_clip: Positive | None = 1.0
    """Maximum norm of the gradient of all weights together; null does not clip."""
    seed: Seed = 0
    """Seed of the initial weights, the order of the data, the masks and dropout."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """`bfloat16` takes half the memory. It is faster on hardware made for it and slower on any
    other."""
    max_length: Length = 128
    """Tokens in a sequence, including [CLS] and [SEP]. Longer texts are truncated; longer contexts
    of questions and longer sentences of words are read in windows."""
    checkpoint_steps: Count = 1000
    """Steps between checkpoints. The default is that of google-research/bert."""
    checkpoint_minutes: Positive | None = None
    """Also write a checkpoint after this many minutes; null counts steps only."""
    checkpoints_kept: Count = 3
    """How many of the latest checkpoints are kept."""
    eval_steps: Count | None = None
    """Steps between evaluations. null evaluates with every checkpoint in pre-training, and after
    every epoch in fine-tuning."""
    deterministic: bool = False
    """Use only operations that give the same bits every time on the same machine, at some cost in
    speed. On CPUs the default operations were seen to do so too."""
    log_steps: Count = 100
    """Steps between lines in the log. The metrics of a line are means since the line before; in
    pre-training, an evaluation also starts new means."""
    skip_nonfinite: bool = False
    """Skip an update whose gradient is not a finite number, instead of ending the run."""
    strategy: Literal["one_device", "mirrored", "multi_worker", "tpu"] = "one_device"
    """Which devices share the work: `one_device` (the first GPU, or else the CPU), `mirrored` (all
    GPUs of this machine), `multi_worker` (all GPUs of the machines in TF_CONFIG) or `tpu`. The
    batch and its results are the same with each of them, except for the random draws of dropout, so
    a run can be continued with another strategy."""
    tpu: str | None = None
    """Name or address of the TPU; null is the TPU of this machine."""

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if (self.steps is None) == (self.epochs is None):
            both = "both are set" if self.steps else "neither is set"
            raise ValueError(f"train needs either train.steps or train.epochs, but {both}")
        if self.batch_size % self.accumulation_steps:
            raise ValueError(
                f"train.batch_size {self.batch_size} is not a multiple of "
                f"train.accumulation_steps {self.accumulation_steps}"
            )
        if self.bias_correction and self.optimizer == "lamb":
            raise ValueError(
                "train.bias_correction is for train.optimizer adamw; lamb always has it; remove "
                "train.bias_correction"
            )
        unread = dict.fromkeys(_OF_OURS if self.named["optimizer"] else (), "optimizer")
        for each in self.named["schedule"]:
            given = str(each.arguments)
            unread |= {key: "schedule" for key, value in _OF_RATE.items() if value not in given}
        for key, other in unread.items():
            if key in type(self).model_fields and not self.is_default(key):
                raise ValueError(
                    f"train.{key} has no effect with this train.{other}; remove it, or set it "
                    f"among the arguments of train.{other}"
                )
        if self.tpu is not None and self.strategy != "tpu":
            raise ValueError(
                f"train.tpu is for train.strategy tpu, not {self.strategy}; change train.strategy, "
                "or remove train.tpu"
            )
        return self

    @property
    def named(self) -> dict[str, list[Imported]]:
        """The objects that are imported for the run, by the keys that name them."""
        given = {key: getattr(self, key, None) or () for key in LISTS}
        given |= {key: (getattr(self, key),) for key in ("schedule", "optimizer")}
        return {
            key: [
                each if isinstance(each, Imported) else Imported(name=each)
                for each in values
                if each not in (None, "adamw", "lamb")
            ]
            for key, values in given.items()
        }


class PretrainingTrain(TrainConfig):
    """How an encoder is pre-trained."""

    long_length: Length | None = None
    """Tokens in a sequence towards the end of the run; null keeps max_length for the whole run."""
    long_fraction: Share = 0.1
    """Share of the steps that have the long sequences."""
    long_batch_size: Count | None = None
    """Sequences in one step of the long ones; null is batch_size, as in the paper."""

    @model_validator(mode="after")
    def _long_keys_go_together(self) -> Self:
        for key in ("long_fraction", "long_batch_size"):
            if self.long_length is None and not self.is_default(key):
                raise ValueError(
                    f"train.{key} is for the steps with train.long_length, which is not set; set "
                    f"it, or remove train.{key}"
                )
        if self.long_length is not None and self.long_length <= self.max_length:
            raise ValueError(
                f"train.long_length {self.long_length} is not longer than train.max_length "
                f"{self.max_length}; raise it, or set it to null for the same length throughout"
            )
        if (self.long_batch_size or 0) % self.accumulation_steps:
            raise ValueError(
                f"train.long_batch_size {self.long_batch_size} is not a multiple of "
                f"train.accumulation_steps {self.accumulation_steps}"
            )
        return self


def _allow_lists(schema: dict[str, Any]) -> None:
    """Lets a key be a list or a range in the schema too: the values of a search."""
    ranges = Range.model_json_schema()
    for key, value in schema["properties"].items():
        if key not in (*NOT_SEARCHED, *LISTS):
            notes = {name: value.pop(name) for name in ("description", "default") if name in value}
            each = dict(value)
            value.clear()
            value |= notes
            lists = {"type": "array", "items": each, "minItems": 1, "uniqueItems": True}
            value["anyOf"] = [*each.get("anyOf", [each]), lists]
            if {"number", "integer"} & {one.get("type") for one in value["anyOf"]}:
                value["anyOf"].append(ranges)


Target = Literal["query", "key", "value", "attention_output", "intermediate", "output"]


class LoraConfig(Section):
    """Low-rank updates, which are trained instead of the encoder (LoRA, Hu et al. 2021)."""

    rank: Count = 8
    """Rank of each update."""
    alpha: Positive | None = None
    """The updates are multiplied by alpha / rank; null is twice the rank."""
    dropout: Rate = 0.0
    """Dropout on the inputs of the updates."""
    targets: Annotated[tuple[Target, ...], Field(min_length=1)] = get_args(Target)
    """Which weights of each block have an update."""

    @property
    def scale(self) -> float:
        """The factor that the updates are multiplied by."""
        return 2.0 if self.alpha is None else self.alpha / self.rank


class FinetuningTrain(TrainConfig):
    """How an encoder is fine-tuned. A list of values for a key is a search over them."""

    model_config = ConfigDict(json_schema_extra=_allow_lists)

    frozen_layers: Natural | None = None
    """Layers that are not trained: 0 freezes the embeddings, n also the first n blocks; null trains
    everything."""
    lora: LoraConfig | Count | None = None
    """Train low-rank updates of the encoder's weights instead of the weights: their rank, or a
    section. The head is trained as usual. Checkpoints contain the sums of weights and updates; null
    trains the weights themselves."""
    layer_decay: Share = 1.0
    """The learning rate of each layer is this times that of the layer above it; 1 gives all layers
    the same rate."""
    group_by_length: bool = True
    """Fill each batch with rows of similar length, so that there is little padding. false draws
    rows at random."""
    early_stopping: Count | None = None
    """Stop after this many evaluations without an improvement; null trains to the end."""
    keep: Literal["last", "best"] = "last"
    """Which weights the run ends with: those of the `last` step, or of the `best` evaluation."""
    metrics: tuple[Imported | ImportedName, ...] | None = None
    """Metrics of Keras or another package on the dev data, in addition to those of the task. They
    get the targets and outputs that a compiled metric gets."""

    @property
    def adapter(self) -> LoraConfig | None:
        """The settings of `lora`, which may be the rank alone."""
        return LoraConfig(rank=self.lora) if isinstance(self.lora, int) else self.lora
