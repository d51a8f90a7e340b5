"""The largest difference from the peers, with the same weights and the same batch.

    python -m benchmarks.parity                     # all sizes, 10 minutes
    python -m benchmarks.parity --sizes tiny mini

"Hugging Face" compares with `BertForPreTraining` (needs torch and transformers, the extra `bench`):
every layer's output, the pooled output, both heads' logits, the loss, and all gradients relative to
the largest element of each. In bfloat16 it compares each side's error against its own float32, ours
divided by theirs: the largest over all layers and the pooled output, the largest over all logits,
and the largest ratio of root mean squares of any layer, the pooled output and the logits together.
"An export" compares the layers and the pooled output of the form that an export computes, in both
precisions, with Hugging Face's. In bfloat16 each layer's error must be at most that of theirs.
"Model Garden" compares with `BertEncoderV2` (tf-models-official): every layer's output and the
pooled output.

The weights are random, made by the peer and read from the checkpoint that it writes. A number is
the largest over both forms of GELU, both token layouts, and rows of one and two segments that are
full, padded, with holes in the mask, of one token and of none. Where the mask is 0 our outputs are
zeros, and the peer's are taken as zeros. The exit code is 1 where a goal is missed.
"""

import argparse
import itertools
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import huggingface, names, reading
from bert_tf.checkpoints.model_garden_classes import make_encoder
from bert_tf.cli import command
from bert_tf.console import logger
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import INPUTS, Encoder
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.models.pretrainer import PreTrainer

LAYOUTS = ("unpadded", "padded")
SIZES = ("tiny", "mini", "small", "medium", "base", "large")
VOCABULARY = 1000
SEQ_LEN = 48

OUTPUTS, LOGITS, LOSS, GRADIENTS = "layers, pooled output", "logits", "loss", "gradients, relative"
BFLOAT16 = "bfloat16 error / theirs, "
ROOT_MEAN_SQUARE = BFLOAT16 + "RMS"
GOALS = {
    "Hugging Face": {
        OUTPUTS: 2e-5,
        LOGITS: 2e-5,
        LOSS: 2e-5,
        GRADIENTS: 2e-5,
        BFLOAT16 + OUTPUTS: 1.2,
        BFLOAT16 + LOGITS: 1.2,
        ROOT_MEAN_SQUARE: 1.2,
    },
    "An export": {OUTPUTS: 2e-5, ROOT_MEAN_SQUARE: 1.0},
    "Model Garden": {OUTPUTS: 2e-5},
}
Found = dict[str, float]


def main() -> int:
    """Prints one row for each goal.

    Returns:
        The exit code, see `bert_tf.cli.command`; 1 where a goal is missed.
    """
    parser = command.module_parser("benchmarks.parity", __doc__)
    parser.add_argument("--sizes", nargs="+", default=SIZES, choices=SIZES)
    return command.run("parity", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    sizes = arguments.sizes
    tasks = list(itertools.product(sizes, GOALS, ("gelu", "gelu_new"), LAYOUTS))
    found = {(size, peer): {} for size in sizes for peer in GOALS}
    # Each in a process of its own: TensorFlow keeps a graph that has a gradient written by hand,
    # and its weights, until the process ends.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for task, more in zip(tasks, pool.map(compare, tasks), strict=True):
            figures = ", ".join(f"{what} {value:.2g}" for what, value in more.items())
            logger.info(f"{', '.join(task)}: {figures}")
            largest = found[task[:2]]
            for what, value in more.items():
                largest[what] = max(largest.get(what, value), value)
    print(f"{'peer':14}{'what':47}{'goal':9}" + "".join(f"{size:9}" for size in sizes))
    missed = False
    for peer, goals in GOALS.items():
        for what, goal in goals.items():
            values = [found[size, peer][what] for size in sizes]
            form = "<9.2f" if goal >= 1 else "<9.1e"
            print(f"{peer:14}{what:47}{goal:{form}}" + "".join(f"{v:{form}}" for v in values))
            missed |= not max(values) <= goal
    if missed:
        sys.exit("a goal is missed")


def compare(task: tuple[str, str, str, str]) -> Found:
    """How a size compares with a peer, with one form of GELU and one token layout."""
    size, peer, activation, layout = task
    config = EncoderConfig.preset(
        f"bert-{size}-uncased", vocab_size=VOCABULARY, hidden_act=activation
    )
    measure = {
        "Hugging Face": hugging_face,
        "An export": an_export,
        "Model Garden": model_garden,
    }[peer]
    return measure(config, layout)


def batch() -> dict[str, np.ndarray]:
    """int32 inputs [6, SEQ_LEN] and the targets of pre-training, up to 5 places a row."""
    random = np.random.RandomState(0)
    mask = np.ones((6, SEQ_LEN), np.int32)
    mask[1, SEQ_LEN // 2 :] = 0
    mask[2] = random.rand(SEQ_LEN) < 0.5
    mask[2, 0] = 1
    mask[3, 1:] = 0
    mask[4] = 0
    segments = np.zeros(mask.shape, np.int32)
    segments[:3, SEQ_LEN // 3 :] = 1
    places = [np.flatnonzero(row)[:: max(1, row.sum() // 5)][:5] for row in mask]
    positions = np.stack([np.pad(place, (0, 5 - len(place))) for place in places])
    weights = np.stack([np.arange(5) < len(place) for place in places])
    return {
        # Not id 0: torch gives its padding row no gradient.
        "input_word_ids": random.randint(1, VOCABULARY, mask.shape).astype(np.int32),
        "input_mask": mask,
        "input_type_ids": segments,
        "masked_lm_positions": positions.astype(np.int32),
        "masked_lm_ids": random.randint(1, VOCABULARY, positions.shape).astype(np.int32),
        "masked_lm_weights": weights.astype(np.float32),
        # Not equally many 0 and 1: a bias's gradient would be a small remainder of large terms.
        "next_sentence_labels": np.array([0, 0, 1, 0, 0, 0], np.int32),
    }


def hugging_face(config: EncoderConfig, layout: str) -> Found:
    """The largest differences from `BertForPreTraining`."""
    import torch

    peer = _torch_peer(config)
    exact, loss = _torch_outputs(peer)
    loss.backward()
    gradients = {
        name.removeprefix("bert."): parameter.grad.numpy()
        for name, parameter in peer.named_parameters()
    }
    rows = huggingface.TABLE.rows("PreTrainer", config.num_hidden_layers)
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        with torch.no_grad():
            rounded, _ = _torch_outputs(peer.to(torch.bfloat16))
        del peer
        checkpoint = reading.find(folder)
        ours, our_loss, our_gradients = _our_outputs(checkpoint, layout, "float32")
        found = _largest(ours, exact) | {
            LOSS: abs(our_loss - loss.item()),
            GRADIENTS: max(
                _relative(gradient, rows[name].read(gradients.__getitem__))
                for name, gradient in our_gradients.items()
            ),
        }
        del gradients, our_gradients
        mixed, _, _ = _our_outputs(checkpoint, layout, "mixed_bfloat16")
    errors, their_errors = _largest(mixed, ours), _largest(rounded, exact)
    found |= {BFLOAT16 + what: errors[what] / their_errors[what] for what in errors}
    # The dozen next-sentence logits alone are too few for a mean; they join the masked-LM ones.
    four = (_with_joint_logits(outputs) for outputs in (mixed, ours, rounded, exact))
    found[ROOT_MEAN_SQUARE] = max(
        _root_mean_square(m, o) / _root_mean_square(r, e) for m, o, r, e in zip(*four, strict=True)
    )
    return found


def an_export(config: EncoderConfig, layout: str) -> Found:
    """The largest differences of the encoder, as an export computes it, from Hugging Face's."""
    import torch

    peer = _torch_peer(config)
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        with torch.no_grad():
            exact, rounded = (
                _torch_outputs(peer.to(dtype))[0][:-2] for dtype in (torch.float32, torch.bfloat16)
            )
        del peer
        checkpoint = reading.find(folder)
        encoder = Encoder(checkpoint.encoder, layout=layout)
        checkpoint.fill(encoder)
    ours, mixed = (_served_outputs(encoder, precision) for precision in ("float32", "bfloat16"))
    # All are compared with the exact outputs, as each precision of an export is a form of its own.
    return {
        OUTPUTS: max(map(_difference, ours, exact)),
        ROOT_MEAN_SQUARE: max(
            _root_mean_square(m, e) / _root_mean_square(r, e)
            for m, r, e in zip(mixed, rounded, exact, strict=True)
        ),
    }


def _served_outputs(encoder: Encoder, precision: str) -> list[np.ndarray]:
    served = ServedModel(encoder, Form(precision))
    outputs = tf.function(lambda: _layers(served, _tensors()))()
    return [tf.cast(output, tf.float32).numpy() for output in outputs]


def _tensors() -> dict[str, tf.Tensor]:
    return {name: tf.constant(value) for name, value in batch().items() if name in INPUTS}


def _torch_peer(config: EncoderConfig) -> Any:
    """`BertForPreTraining` with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    fields = {k: v for k, v in config.to_dict().items() if k != "attention"}
    peer = transformers.BertForPreTraining(
        transformers.BertConfig(**fields, attn_implementation="eager")
    ).eval()
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.dim() == 1:  # biases and layer normalizations, else all 0 or 1
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return peer


def _with_joint_logits(outputs: list[np.ndarray]) -> list[np.ndarray]:
    """The layers, the pooled output, and the logits of both heads end to end."""
    return [*outputs[:-2], np.concatenate([each.ravel() for each in outputs[-2:]])]


def _largest(outputs: list[np.ndarray], expected: list[np.ndarray]) -> Found:
    """The largest difference of layers and pooled output, and of both heads' logits."""
    found = list(map(_difference, outputs, expected))
    return {OUTPUTS: max(found[:-2]), LOGITS: max(found[-2:])}


def _torch_outputs(peer: Any) -> tuple[list[np.ndarray], Any]:
    """Every layer, pooled output, masked-LM and NSP logits, as float32; and the loss."""
    import torch

    data = {name: torch.tensor(value).long() for name, value in batch().items()}
    mask, weights = data["input_mask"], data["masked_lm_weights"].float()
    bert = peer.bert(
        input_ids=data["input_word_ids"],
        attention_mask=mask,
        token_type_ids=data["input_type_ids"],
        output_hidden_states=True,
    )
    pooled = bert.pooler_output * mask[:, :1]
    places = data["masked_lm_positions"][..., None].expand(-1, -1, pooled.shape[-1])
    masked_lm, follows = peer.cls(torch.gather(bert.last_hidden_state, 1, places), pooled)
    nll = torch.nn.functional.cross_entropy(
        masked_lm.flatten(0, 1), data["masked_lm_ids"].flatten(), reduction="none"
    )
    loss = (nll * weights.flatten()).sum() / (weights.sum() + 1e-5)
    loss = loss + torch.nn.functional.cross_entropy(follows, data["next_sentence_labels"])
    layers = [hidden * mask[..., None] for hidden in bert.hidden_states[1:]]
    outputs = [*layers, pooled, masked_lm[weights.bool()], follows]
    return [output.detach().float().numpy() for output in outputs], loss


def _our_outputs(
    checkpoint: reading.Checkpoint, layout: str, dtype: str
) -> tuple[list[np.ndarray], float, dict[str, np.ndarray]]:
    """Our outputs and loss, and in float32 the gradient of each weight by its name."""
    model = PreTrainer(Encoder(checkpoint.encoder, layout=layout, dtype=dtype))
    checkpoint.fill(model)
    data = {name: tf.constant(value) for name, value in batch().items()}
    weights = {name: weight.value for name, weight in names.weight_names(model).items()}

    @tf.function
    def run() -> tuple:
        with tf.GradientTape() as tape:
            heads = model(data)
            loss = model.compute_loss(y=data, y_pred=heads)
        masked_lm = tf.boolean_mask(heads["masked_lm"], data["masked_lm_weights"] > 0)
        outputs = [*_layers(model.encoder, data), masked_lm, heads["next_sentence"]]
        sources = weights if dtype == "float32" else {}
        return outputs, loss, tape.gradient(loss, sources)

    outputs, loss, gradients = run.get_concrete_function()()
    # `numpy` would copy them.
    arrays = {name: np.asarray(tf.convert_to_tensor(g)) for name, g in gradients.items()}
    return [tf.cast(output, tf.float32).numpy() for output in outputs], float(loss), arrays


def model_garden(config: EncoderConfig, layout: str) -> Found:
    """The largest difference from `BertEncoderV2`."""
    peer = make_encoder(config)
    data = {name: tf.constant(value) for name, value in batch().items()}
    inputs = {name: data[name] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    peer(inputs)
    random = np.random.RandomState(0)
    for weight in peer.trainable_variables:
        if not weight.name.partition(":")[0].endswith(("kernel", "embeddings")):
            weight.assign_add(random.normal(scale=0.1, size=weight.shape))
    theirs = peer(inputs)
    mask = batch()["input_mask"][..., None]
    expected = [layer.numpy() * mask for layer in theirs["encoder_outputs"]]
    expected.append(theirs["pooled_output"].numpy() * mask[:, 0])
    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(encoder=peer).write(str(Path(folder, "ckpt")))
        encoder = Encoder(config, layout=layout)
        reading.find(folder).fill(encoder)
        ours = tf.function(lambda: _layers(encoder, data))()
    return {OUTPUTS: max(map(_difference, ours, expected))}


def _layers(encoder: Encoder | ServedModel, inputs: dict[str, tf.Tensor]) -> list[tf.Tensor]:
    outputs = encoder(inputs)
    return [*outputs["encoder_outputs"], outputs["pooled_output"]]


def _difference(one: Any, other: Any) -> float:
    return float(np.abs(np.asarray(one) - np.asarray(other)).max())


def _root_mean_square(one: Any, other: Any) -> float:
    return float(np.sqrt(np.square(np.asarray(one) - np.asarray(other)).mean()))


def _relative(one: Any, other: Any) -> float:
    return _difference(one, other) / max(float(np.abs(np.asarray(other)).max()), 1e-30)


if __name__ == "__main__":
    sys.exit(main())
