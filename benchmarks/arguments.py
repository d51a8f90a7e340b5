"""What the command lines of the benchmarks have in common, besides `bert_tf.cli.command`."""

import argparse
from pathlib import Path


def existing(path: str) -> Path:
    """The type of an argument that names a file or folder to read."""
    found = Path(path)
    if not found.exists():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return found
