"""What a run in a bucket costs, compared with the same run on the local disk.

    python -m benchmarks.remote                       # a few minutes
    python -m benchmarks.remote --latency 0 0.03 --steps 60 --hidden-size 256

The bucket is moto's S3 server on the loopback interface, behind a proxy that waits before it passes
a request on, as a network does. The server, the proxy and the training share the processors, so
that the figures are higher than those of a store elsewhere with that latency. A pre-training of
random text is run once on the local disk and once for each latency. Each has its own process and
an empty cache. The corpus is read from where the run is written.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.soak.runs import write_experiment
from bert_tf.cli import command
from tests.buckets import Bucket, served_moto

_CODE = """
import json, sys, time
from bert_tf.config.reading import load_config
from bert_tf import runs
from bert_tf.training.checkpointing import Checkpoints
saving, save = [], Checkpoints.save
def timed(*arguments):
    start = time.monotonic()
    save(*arguments)
    saving.append(time.monotonic() - start)
Checkpoints.save = timed
start = time.monotonic()
runs.pretrain(load_config(sys.argv[1], sys.argv[3:]), sys.argv[2])
print(json.dumps([time.monotonic() - start, saving]))
"""


def main() -> int:
    """Prints a table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.remote", __doc__)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.0, 0.03])
    parser.add_argument("--steps", type=int, default=40, help="updates (%(default)s)")
    parser.add_argument("--every", type=int, default=10, help="between checkpoints (%(default)s)")
    parser.add_argument("--hidden-size", type=int, default=256, help="%(default)s")
    return command.run("remote", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    settings = [
        f"model.hidden_size={arguments.hidden_size}",
        "model.num_hidden_layers=4",
        f"train.steps={arguments.steps}",
        f"train.checkpoint_steps={arguments.every}",
        f"train.eval_steps={arguments.steps}",
    ]
    print("| place | seconds in all | a checkpoint, seconds | MB of a checkpoint | requests |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch, served_moto() as proxy:
        folder = Path(scratch)
        yaml = write_experiment(folder)
        _measure("local disk", yaml, folder / "run", settings, {})
        newest = sorted((folder / "run" / "checkpoints").iterdir())[-1]
        size = sum(each.stat().st_size for each in newest.iterdir()) / 1e6
        print(f" {size:.0f} | |", flush=True)
        for number, latency in enumerate(arguments.latency):
            own = {"AWS_ENDPOINT_URL": proxy.url, "BERT_TF_CACHE": str(folder / f"cache-{number}")}
            os.environ |= own
            proxy.latency = 0.0
            bucket = Bucket("s3", f"bucket-{number}", proxy)
            for name in ("soak.yaml", "corpus.txt", "vocab.txt"):
                bucket.put(name, (folder / name).read_bytes())
            proxy.latency = latency
            proxy.seen.clear()
            run, yaml = f"{bucket.address}/run", f"{bucket.address}/soak.yaml"
            _measure(f"bucket, {latency * 1e3:.0f} ms a request", yaml, run, settings, own)
            print(f" {size:.0f} | {len(proxy.seen)} |", flush=True)


def _measure(
    place: str, yaml: Path | str, run: Path | str, settings: list[str], own: dict[str, str]
) -> None:
    """Prints the first cells of a line."""
    line = [sys.executable, "-c", _CODE, str(yaml), str(run), *settings]
    done = subprocess.run(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | own | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        check=True,
        text=True,
    )
    seconds, saving = json.loads(done.stdout.splitlines()[-1])
    print(f"| {place} | {seconds:.1f} | {sum(saving) / len(saving):.2f} |", end="")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
