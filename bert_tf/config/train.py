"""The section `train`: how the weights are trained.

In a file any of these keys may be a list: then all values are tried.
"""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config.kinds import Count, Positive, Share
from bert_tf.config.typed import AtLeast, Between
from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """What pre-training and fine-tuning share."""

    # How long: exactly one of the two. The paper pre-trains for 1,000,000 steps and fine-tunes for
    # 2, 3 or 4 epochs.
    steps: Count | None = None
    epochs: Positive | None = None
    # Sequences in one step, over all devices (the reference's; the paper fine-tunes with 16 or 32).
    batch_size: Count = 32
    # Parts that a batch is cut into, to save memory; the numbers stay the same but for the draws
    # of dropout.
    accumulation_steps: Count = 1
    # The highest rate, at the end of the warm-up (the reference's, for fine-tuning and
    # pre-training; the paper pre-trains with 1e-4).
    learning_rate: Positive = 5e-5
    # Share of the steps in which the rate rises to that.
    warmup_fraction: Share = 0.1
    # Begin the linear decay where the warm-up ends, as transformers does; the reference reckons it
    # from step 0, so that with a warm-up of a tenth the rate falls to 0.9 of learning_rate there.
    decay_after_warmup: bool = False
    # lamb is for batches of thousands (You et al. 2020).
    optimizer: Literal["adamw", "lamb"] = "adamw"
    # Correct adamw's moments for having begun at zero, as PyTorch does and the reference does not;
    # without it the first thousand updates are larger than learning_rate says.
    bias_correction: bool = False
    # Added to the root of the second moment: the reference's; PyTorch's is 1e-8.
    adam_epsilon: Positive = 1e-6
    # Weights shrink by this times the rate in every step; LayerNorm and biases don't.
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    # Longest gradient, all weights taken together; null does not clip.
    gradient_clip: Positive | None = 1.0
    # Decides initial weights, order of the data, masks and dropout.
    seed: Annotated[int, Between(0, 2**31 - 1)] = 0
    # bfloat16 computes in half the memory, and faster on hardware made for it.
    precision: Literal["float32", "bfloat16"] = "float32"
    # Tokens in a sequence, [CLS] and [SEP] included; longer texts are cut.
    max_length: Annotated[int, AtLeast(3)] = 128
    # A checkpoint every so many steps (the reference's), also every so many minutes if they are not
    # null, and how many of them stay.
    checkpoint_steps: Count = 1000
    checkpoint_minutes: Positive | None = None
    checkpoints_kept: Count = 3
    # Evaluate every so many steps; null: with every checkpoint in pre-training, and after every
    # epoch in fine-tuning.
    eval_steps: Count | None = None
    # Use only operations that give the same bits every time on the same machine, which cost some
    # speed. On CPUs the others were seen to do so too.
    deterministic: bool = False
    # A line in the log every so many steps.
    log_steps: Count = 100
    # Leave out an update whose gradient is not a number, instead of ending the run there.
    skip_nonfinite: bool = False
    # Which devices share the work: one_device (the first GPU, or else the CPU), mirrored (all GPUs
    # of this machine), multi_worker (all GPUs of the machines in TF_CONFIG) or tpu. The batch and
    # its results are the same with any of them but for the draws of dropout, so that a run may go
    # on with another.
    strategy: Literal["one_device", "mirrored", "multi_worker", "tpu"] = "one_device"
    # Name or address of the TPU; null is the one of this machine.
    tpu: str | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            both = "both are set" if self.steps else "neither is set"
            raise UserError(f"train needs either train.steps or train.epochs, but {both}")
        if self.batch_size % self.accumulation_steps:
            raise UserError(
                f"train.batch_size {self.batch_size} is not a multiple of "
                f"train.accumulation_steps {self.accumulation_steps}"
            )
        if self.bias_correction and self.optimizer == "lamb":
            raise UserError(
                "train.bias_correction is for train.optimizer adamw, lamb always corrects; remove "
                "train.bias_correction"
            )
        if self.tpu is not None and self.strategy != "tpu":
            raise UserError(
                f"train.tpu is for train.strategy tpu, but that is {self.strategy}; change it, or "
                "remove train.tpu"
            )


@dataclasses.dataclass(frozen=True)
class PretrainingTrain(TrainConfig):
    """How an encoder is pre-trained.

    Long sequences cost much and teach little but the late positions. So the paper trains nine
    tenths of the steps with short ones (appendix A.2): max_length 128, long_length 512.
    """

    # Tokens in a sequence towards the end of the run; null: max_length all along.
    long_length: Annotated[int, AtLeast(3)] | None = None
    # Share of the steps that have long sequences.
    long_fraction: Share = 0.1
    # Sequences in one step of these; null is batch_size, as in the paper.
    long_batch_size: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("long_fraction", "long_batch_size"):
            if self.long_length is None and getattr(self, key) != getattr(PretrainingTrain, key):
                raise UserError(
                    f"train.{key} is for the steps with train.long_length, which is not set; set "
                    f"it, or remove train.{key}"
                )
        if self.long_length is not None and self.long_length <= self.max_length:
            raise UserError(
                f"train.long_length {self.long_length} is not longer than train.max_length "
                f"{self.max_length}; raise it, or set it to null for one length all along"
            )
        if (self.long_batch_size or 0) % self.accumulation_steps:
            raise UserError(
                f"train.long_batch_size {self.long_batch_size} is not a multiple of "
                f"train.accumulation_steps {self.accumulation_steps}"
            )


@dataclasses.dataclass(frozen=True)
class FinetuningTrain(TrainConfig):
    """How an encoder is fine-tuned."""

    # Layers that stay as they are: 0 the embeddings, n also the first n blocks; null trains all.
    frozen_layers: Annotated[int, AtLeast(0)] | None = None
    # Each layer's rate is this times that of the layer above; 1 treats all alike.
    layer_decay: Annotated[float, Between(0, 1)] = 1.0
    # Fill each batch with rows of similar length, which leaves little padding; false draws them at
    # random.
    group_by_length: bool = True
    # Stop after so many evaluations without a better one; null runs to the end.
    early_stopping: Count | None = None
    # Which weights the run ends with: those of the last step, or of the best evaluation.
    keep: Literal["last", "best"] = "last"
