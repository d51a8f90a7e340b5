"""Tables of speed beside the peers.

    python -m benchmarks.speed                       # every table
    python -m benchmarks.speed --works encode finetune --precisions float32 --peers pytorch

The weights are random, of BERT-base's shape, made by transformers and read by every contestant.
Outputs are compared before anything is timed. Each row gives the median time of a step and its
spread (first and third quartile), sequences a second, peak memory, and the ratio to the fastest
peer of the same precision.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.speed.turns import Contestant, take_turns

VOCABULARY = 30522
# work -> (batch, length, goal for float32, goal for bfloat16).
WORKS = {
    "encode": (8, 128, 1.05, 1.05),
    "classify": (32, None, 1.6, 1.8),
    "latency": (1, None, 1.1, 1.1),
    "finetune": (32, None, 1.5, 1.5),
    "pretrain": (8, 128, 1.3, 1.3),
    "pretrain-long": (4, 512, 1.3, 1.3),
}
SERVING = ("encode", "classify")
PEERS = ("pytorch", "compiled", "openvino", "onnx", "model_garden", "keras_hub")
# A difference between outputs above this is not noise of the precision.
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1}


def main() -> None:
    """Prints one table for each work and precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument(
        "--precisions", nargs="+", choices=TOLERANCES, default=["float32", "bfloat16"]
    )
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--layers", type=int, default=12, help="layers of BERT-base's width")
    parser.add_argument("--vocab", help="a vocabulary of 30,522 pieces, for the works on texts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        weights = _make_weights(Path(scratch) / "weights", arguments.layers, arguments.vocab)
        for work in arguments.works:
            for precision in arguments.precisions:
                _compare(work, precision, weights, Path(scratch), arguments)


def _make_weights(folder: Path, layers: int, vocab: str | None) -> Path:
    """Writes random weights as transformers does, in a process of its own."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    config = transformers.BertConfig(num_hidden_layers=layers, num_labels=2)
    transformers.BertForPreTraining(config).save_pretrained(folder)
    if vocab:
        transformers.BertTokenizerFast(vocab).save_pretrained(folder)
        (folder / "vocab.txt").write_bytes(Path(vocab).read_bytes())
    return folder


def _compare(
    work: str, precision: str, weights: Path, scratch: Path, arguments: argparse.Namespace
) -> None:
    batch, length, *goals = WORKS[work]
    goal = goals[precision == "bfloat16"]
    settings = {
        "work": {"latency": "classify", "pretrain-long": "pretrain"}.get(work, work),
        "precision": precision,
        "batch": batch,
        "length": length,
        "threads": arguments.threads,
        "weights": str(weights),
        "vocabulary_file": str(weights / "vocab.txt"),
    }
    contestants = [
        Contestant(f"benchmarks.speed.{module}", settings | extra, scratch)
        for module, extra in _entries(settings["work"], precision, arguments.peers)
    ]
    take_turns(contestants, arguments.rounds, arguments.steps)
    if settings["work"] in SERVING:
        _check(contestants, TOLERANCES[precision])
    best = min(each.median() for each in contestants if not each.name.startswith("bert_tf"))
    title = f"{work}, {precision}, batch {batch}" + (f" x {length}" if length else "")
    table = Table("contestant", "ms", "quartiles", "sequences/s", "GiB", "ratio", "goal")
    table.title = title
    for each in contestants:
        low, high = np.percentile(each.seconds, [25, 75])
        table.add_row(
            each.name,
            f"{each.median() * 1e3:.1f}",
            f"{low * 1e3:.1f}-{high * 1e3:.1f}",
            f"{batch / each.median():.2f}",
            f"{each.memory:.2f}",
            f"{best / each.median():.2f}",
            f"{goal:.2f}" if each.name.startswith("bert_tf") else "",
        )
        each.close()
    Console(width=100).print(table)


def _entries(work: str, precision: str, peers: list[str]) -> list[tuple[str, dict]]:
    """The modules that do a work in a precision, and what each is told besides."""
    ours = [("ours", {"name": "bert_tf", "frozen": False})]
    known = {"pytorch": [("pytorch", {"name": "PyTorch"})]}
    if work in SERVING:
        ours.append(("ours", {"name": "bert_tf, frozen", "frozen": True}))
        known["openvino"] = [("openvino_runtime", {"name": "OpenVINO"})]
        if precision == "float32":
            known["onnx"] = [("onnx_runtime", {"name": "ONNX Runtime"})]
    if work in ("encode", "finetune"):
        known["keras_hub"] = [("keras_hub", {"name": "KerasHub"})]
    if work == "encode":
        known["compiled"] = [("pytorch", {"name": "PyTorch, compiled", "compiled": True})]
        known["model_garden"] = [("model_garden", {"name": "Model Garden"})]
    return ours + [entry for peer in peers for entry in known.get(peer, [])]


def _check(contestants: list[Contestant], tolerance: float) -> None:
    expected, *others = [each.outputs() for each in contestants]
    for each, outputs in zip(contestants[1:], others, strict=True):
        difference = np.abs(outputs - expected).max()
        if not difference <= tolerance:
            raise SystemExit(f"{each.name} computes something else: it differs by {difference:.2g}")


if __name__ == "__main__":
    main()
