"""A tiny pre-training, in one process or in two, that can be started again and again."""

import os
import random
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from bert_tf.checkpoints import native, of_run, tensors
from bert_tf.io.remote import fetched
from tests.buckets import Bucket

CHECKPOINT_STEPS = 4
PATIENCE = 180.0  # seconds after which a process that should end has failed to

WORDS = "the a cat dog bird fish sat ran flew swam on under over mat log tree sea good bad".split()
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]


class Run:
    """One pre-training, in one process or in two, that can be started again and again.

    Args:
        yaml: its configuration.
        folder: its run folder.
        steps: its updates.
        workers: number of processes.
        bucket: where it is written; `folder` then only names it, and its logs.
    """

    def __init__(
        self, yaml: Path, folder: Path, steps: int, workers: int, bucket: Bucket | None = None
    ):
        self.folder, self.bucket = folder, bucket
        self._workers = workers
        strategy = "multi_worker" if workers > 1 else "one_device"
        settings = [f"train.steps={steps}", f"train.strategy={strategy}"]
        self.place: str | Path = folder
        where: str | Path = yaml
        if bucket is not None:
            self.place = f"{bucket.address}/run"
            for name in (yaml.name, "corpus.txt", "vocab.txt"):
                bucket.put(f"data/{name}", (yaml.parent / name).read_bytes())
            where = f"{bucket.address}/data/{yaml.name}"
        command = [sys.executable, "-m", "bert_tf", "pretrain", where, "--out", self.place]
        self._command = [str(each) for each in (*command, "--set", *settings)]
        self.processes: list[subprocess.Popen] = []

    def start(self, late: float = 0.0) -> None:
        """Starts all processes, the chief first, and waits `late` seconds before each other one."""
        addresses = [f"localhost:{port}" for port in free_ports(self._workers)]
        self.processes = []
        for index in range(self._workers):
            if index:
                time.sleep(late)
            member = ["--workers", *addresses, "--worker", str(index)] if self._workers > 1 else []
            with open(self.log(index), "w") as log:
                process = subprocess.Popen(
                    [*self._command, *member],
                    stderr=log,
                    stdout=log,
                    env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
                )
            self.processes.append(process)

    def log(self, index: int) -> Path:
        """The file with the output of a process since its last start."""
        return self.folder.with_name(f"{self.folder.name}-{index}.log")

    def end(self) -> list[int | None]:
        """The exit codes of all processes; None for one that did not end in time."""
        deadline = time.monotonic() + PATIENCE
        codes: list[int | None] = []
        for process in self.processes:
            try:
                codes.append(process.wait(max(0.1, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                codes.append(None)
        self.stop()
        return codes

    def stop(self) -> None:
        """Kills the processes that are still running."""
        for process in self.processes:
            process.kill()
            process.wait()

    def saved(self) -> list[int]:
        """The steps of its complete checkpoints."""
        if self.bucket is not None:
            parts = [name.split("/") for name in self.bucket.names("run/checkpoints")]
            names = [part[2] for part in parts if part[3:] == [native.DESCRIPTION_FILE]]
        else:
            names = [path.name for path in (self.folder / "checkpoints").glob("step-*")]
        return sorted(int(name.removeprefix("step-")) for name in names)

    def alive(self) -> bool:
        """Whether no process has ended."""
        return all(process.poll() is None for process in self.processes)

    def resumed_at(self) -> int:
        """The step that the run last resumed at; 0 if it has not."""
        steps = re.findall(r"resuming .* at step (\d+) of", self.log(0).read_text())
        return int(steps[-1]) if steps else 0


def same(run: str | Path, undisturbed: Path) -> bool:
    """Whether both runs ended with the same bits."""
    results = []
    for each in (fetched(run), undisturbed):
        newest = of_run.newest(each)
        files = ("model.safetensors", "optimizer.safetensors")
        found = {file: tensors.load(newest / file) for file in files}
        bits = {(file, k): v.tobytes() for file in files for k, v in found[file].items()}
        results.append((newest.name, bits, (each / "metrics.json").read_text()))
    return results[0] == results[1]


def free_ports(count: int) -> list[int]:
    """Ports that nothing listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def write_experiment(folder: Path) -> Path:
    """A tiny pre-training with all that it needs."""
    source = random.Random(0)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    documents = (
        "\n".join(" ".join(source.choices(WORDS, k=source.randint(3, 8))) + " ." for _ in range(8))
        for _ in range(40)
    )
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    path = folder / "soak.yaml"
    path.write_text(
        "task: pretraining\n"
        "data: {path: corpus.txt, format: sentence_per_line, dev_fraction: 0.2}\n"
        "tokenizer: {vocab: vocab.txt}\n"
        "model: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2,"
        " max_position_embeddings: 32}\n"
        f"train: {{batch_size: 8, max_length: 32, checkpoint_steps: {CHECKPOINT_STEPS},"
        " eval_steps: 50, deterministic: true, log_steps: 10}\n"
    )
    return path
