"""What is measured, for whom, and how fast it should be."""

import dataclasses

PRECISIONS = ("float32", "bfloat16")
# (layers, hidden size, heads) of the weights that the works compute with.
SHAPES = {
    "2 x 128": (2, 128, 2),
    "4 x 256": (4, 256, 4),
    "small": (6, 384, 12),
    "8 x 512": (8, 512, 8),
    "base": (12, 768, 12),
}


@dataclasses.dataclass(frozen=True)
class Work:
    """A row of the table.

    Attributes:
        title: what is done, in the words of a picture.
        job: the function of the contestants' modules.
        batch: rows of a step.
        length: tokens of each row; None for texts and rows of MRPC's lengths.
        shape: the weights' shape, one of `SHAPES`.
        must: the least ratio to the fastest peer, for float32 and bfloat16.
        aim: the ratio that would be good.
        memory: the most memory of a process, as a multiple of that of the peer with the least, and
            the multiple that would be good.
    """

    title: str
    job: str
    batch: int
    length: int | None
    shape: str
    must: tuple[float, float]
    aim: tuple[float, float]
    memory: tuple[float, float] = (1.0, 1.0)

    @property
    def serves(self) -> bool:
        """Whether it answers rather than trains, so that there are outputs to compare."""
        return self.job in ("encode", "classify")


WORKS = {
    "encode": Work(
        "token ids to the last layer, 8 x 128",
        *("encode", 8, 128, "base"),
        must=(1.0, 1.0),
        aim=(1.1, 1.1),
        memory=(1.5, 1.2),
    ),
    "classify": Work(
        "32 texts to probabilities",
        *("classify", 32, None, "base"),
        must=(1.35, 1.25),
        aim=(1.45, 1.45),
        memory=(1.3, 1.0),
    ),
    "latency": Work(
        "one text to probabilities",
        *("classify", 1, None, "base"),
        must=(1.0, 0.95),
        aim=(1.1, 1.05),
        memory=(1.3, 1.0),
    ),
    "finetune": Work(
        "fine-tuning, 12 x 768", "finetune", 32, None, "base", (1.35, 1.1), (1.6, 1.4)
    ),
    "finetune-small": Work(
        "fine-tuning, 6 x 384", "finetune", 32, None, "small", (1.3, 1.15), (1.6, 1.4)
    ),
    "pretrain": Work("pre-training, 8 x 128", "pretrain", 8, 128, "base", (1.1, 1.1), (1.3, 1.3)),
    "pretrain-long": Work(
        "pre-training, 4 x 512", "pretrain", 4, 512, "base", (1.2, 1.2), (1.4, 1.4)
    ),
}
# docs/how_to/serving.md recommends this for a process that only answers: oneDNN then keeps weights
# in the order of its kernels. A process that trains would go on with old weights.
FIXED_WEIGHTS = {"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}
# Goals of the share of the machine's peak of matrix products, for float32 and bfloat16.
SHARE_OF_PEAK = (None, 0.75)
# Our contestant that answers as `bert-tf predict` does: with TensorFlow's C library.
PREDICT = "bert_tf, as bert-tf predict"
PEERS = ("pytorch", "compiled", "openvino", "onnx", "model_garden", "keras_hub")


def ways(threads: int) -> list[dict]:
    """The settings with which a process can answer with an export of ours.

    Each has a name, `intra_op` and `inter_op`, the numbers of threads, and, if it needs any, an
    `environment` to be started with.
    """
    from bert_tf.export.sharded import SHARDS

    default = {"intra_op": threads, "inter_op": threads}
    # A thread for the operations of each shard.
    set_so = {"intra_op": max(1, threads // SHARDS), "inter_op": SHARDS}
    return [
        {"name": "bert_tf"} | default,
        {"name": "bert_tf, threads set"} | set_so,
        {"name": "bert_tf, threads and fixed weights", "environment": FIXED_WEIGHTS} | set_so,
    ]


def entries(work: Work, precision: str, peers: list[str], threads: int) -> list[tuple[str, dict]]:
    """The modules that do a work in a precision, ours first, each with its own settings."""
    # As many of both kinds as there are cores: TensorFlow's own choice.
    ours = [("ours", {"name": "bert_tf", "intra_op": threads, "inter_op": threads})]
    known = {"pytorch": ("pytorch", {"name": "PyTorch"})}
    if work.serves:
        default, advised, fixed = ways(threads)
        ours = [("ours_served", way) for way in (default, advised, fixed)]
        ours.append(("ours_session", advised | {"name": PREDICT}))
        known["openvino"] = ("openvino_runtime", {"name": "OpenVINO"})
        if precision == "float32":
            known["onnx"] = ("onnx_runtime", {"name": "ONNX Runtime"})
    if work.job in ("encode", "finetune"):
        known["keras_hub"] = ("keras_hub", {"name": "KerasHub"})
    if work.job == "encode":
        known["compiled"] = ("pytorch", {"name": "PyTorch, compiled", "compiled": True})
        known["model_garden"] = ("model_garden", {"name": "Model Garden"})
    return ours + [known[peer] for peer in peers if peer in known]
