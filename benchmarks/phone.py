"""LiteRT files of every precision: size, latency and accuracy, compared with other runtimes.

    python -m benchmarks.phone RUN [RUN …] --out DIR

For finished fine-tuned runs. Rows of the training file decide the ranges of numbers. Each runtime
computes one row of the dev file at a time: LiteRT and ONNX Runtime get ids, and a SavedModel gets
strings, which it tokenizes. ONNX Runtime, only for classification, reads the weights through
transformers; its own tool makes the dynamic int8. The runtimes take turns, each with all cores. The
files and `phone.json` are written to DIR; files that are there are used again.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import bert_tf
from bert_tf.cli.command import module_parser, run
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError
from bert_tf.export.litert.saving import LiteForm, save_lite
from bert_tf.io.atomic import write_text
from bert_tf.report import processor
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import trained
from bert_tf.runs.shrinking import Call, asked_of, ids_of, megabytes, milliseconds

# The number of rows that decide the ranges of numbers, and of rows that are timed.
_CALIBRATION, _TIMED = 300, 100
_LENGTHS = (16, 32, 64, 128, 256, 384, 512)
_LITE = {
    "LiteRT float32": ("float32", False),
    "LiteRT float16": ("float16", False),
    "LiteRT int8": ("int8", False),
    "LiteRT int8, fixed ranges": ("int8", True),
}
_SAVED = {"SavedModel float32": "float32", "SavedModel bfloat16": "bfloat16"}


def main() -> int:
    """Prints a table for each run; returns the exit code, see `bert_tf.cli.command`."""
    parser = module_parser("benchmarks.phone", __doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    return run("phone", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    found = {}
    for path in arguments.runs:
        found[path.name] = _measure(path, arguments.out / path.name)
        table = Table(
            "form", "MB", "ms a row", "metric", "dev", title=f"{path.name}; {processor()}"
        )
        for form, each in found[path.name].items():
            score = each.get("score")
            shown = "" if score is None else f"{score:.4f}"
            table.add_row(
                form, f"{each['MB']:.1f}", f"{each['ms']:.2f}", each.get("metric", ""), shown
            )
        Console(width=100).print(table)
    results = {"processor": processor(), "threads": os.cpu_count(), "runs": found}
    write_text(arguments.out / "phone.json", json.dumps(results, indent=2) + "\n")


def _measure(path: Path, out: Path) -> dict[str, dict[str, Any]]:
    opened = RunFolder.open(path)
    if not isinstance(opened.config, FinetuningRun):
        raise UserError(f"{path} is a {opened.config.task} run; name a fine-tuned one")
    task, model = trained(opened)
    out.mkdir(parents=True, exist_ok=True)
    dev = task.read(next(iter(task.files("dev").values())))
    signature, asked = asked_of(model, dev, _TIMED)
    rows = ids_of(model, dev, _TIMED)
    metric = task.best_metric_of(opened.config)
    results: dict[str, dict[str, Any]] = {}
    calls: dict[str, Call] = {}
    lengths = [*(each for each in _LENGTHS if each < model.max_length), model.max_length]
    for form, (precision, is_calibrated) in _LITE.items():
        file = out / f"{form.replace(' ', '_').replace(',', '')}.tflite"
        if not file.exists():
            ranges, fits = None, lengths
            if is_calibrated:
                ranges, fits = ids_of(model, task.training_rows(), _CALIBRATION), [model.max_length]
            save_lite(model, file, LiteForm(precision, fits, calibration=ranges))
        lite = bert_tf.load(file)
        score = task.score(lite.model, lite.model.infer(dev), dev)[metric]
        results[form] = {"MB": megabytes(file), "metric": metric, "score": score}
        calls[form] = lambda i, network=lite.network: network.run(rows[i])
    for form, precision in _SAVED.items():
        folder = out / form.replace(" ", "_")
        if not folder.exists():
            model.export(folder, precision=precision, freeze=True)
        served = bert_tf.load(folder)
        results[form] = {"MB": megabytes(folder)}
        calls[form] = lambda i, served=served: served.ask(signature, [asked[i]])
    if type(model).__name__ == "TextClassifier":
        for form, (file, call) in _onnx(model, out, rows).items():
            results[form] = {"MB": megabytes(file)}
            calls[form] = call
    for form, taken in milliseconds(calls, min(len(rows), len(asked))).items():
        results[form]["ms"] = taken
    return results


def _onnx(model: Any, out: Path, rows: Any) -> dict[str, tuple[Path, Call]]:
    """ONNX Runtime in float32 and in dynamic int8: the file, and a function for a row."""
    import onnxruntime
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic

    names = ("input_ids", "attention_mask", "token_type_ids")
    exact, int8 = out / "model.onnx", out / "model_int8.onnx"
    if not exact.exists():
        model.save_checkpoint(out / "huggingface", format="huggingface")
        network = transformers.AutoModelForSequenceClassification.from_pretrained(
            out / "huggingface", attn_implementation="eager"
        ).eval()
        network.config.return_dict = False
        torch.onnx.export(
            network,
            tuple(torch.ones([1, 5], dtype=torch.int64) for _ in names),
            exact,
            input_names=list(names),
            output_names=["logits"],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
            dynamo=False,
        )
    if not int8.exists():
        quantize_dynamic(exact, int8, weight_type=QuantType.QInt8)

    def caller(file: Path) -> Call:
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        features = ("input_word_ids", "input_mask", "input_type_ids")

        def call(i: int) -> Any:
            given = {
                name: rows[i][feature][np.newaxis].astype(np.int64)
                for name, feature in zip(names, features, strict=True)
            }
            return session.run(["logits"], given)

        return call

    return {
        "ONNX Runtime float32": (exact, caller(exact)),
        "ONNX Runtime int8": (int8, caller(int8)),
    }


if __name__ == "__main__":
    sys.exit(main())
