"""A published checkpoint: converted to every format and back, and compared with transformers.

    python -m benchmarks.real_checkpoint --checkpoint FOLDER [--transformers]

Every format is written from the checkpoint, read, and written as bert_tf's again: a row says
whether each weight has the same bits, whether the outputs for a few sentences do, and how long it
takes to write and to read. With --transformers (where torch and transformers are installed),
transformers also loads the checkpoint, if it is a Hugging Face folder, and the folder converted to
Hugging Face's format: a row says how many weights it missed or did not expect, and the largest
difference of token ids, token vectors and mean-pooled embeddings (of length 1) from ours.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import existing
from bert_tf.checkpoints import conversion, reading
from bert_tf.checkpoints.names import weight_names
from bert_tf.cli import command
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks import from_checkpoint
from bert_tf.text import Preprocessor, Tokenizer

FORMATS = ("bert_tf", "huggingface", "tf1", "model_garden")
SENTENCES = (
    "The kettle was still warm when they came back from the harbour.",
    "When they returned from the port, the kettle had not cooled down yet.",
    "Interest rates rose for the third time this year, to 4.25%.",
    "Ça ne vaut pas la peine d'en parler — or does it?",
    "A photon's energy is proportional to its frequency: E = hν.",
    "no",
    "My cat (the grey one) sleeps on the router, because it's the warmest place in the flat; the "
    "other one, which we found behind the bakery two winters ago, prefers the laundry basket and "
    "will not be moved from it by anything short of an open tin.",
    "東京 is the capital of 日本.",
)


class Outputs(NamedTuple):
    """What an encoder makes of the sentences.

    Attributes:
        ids: int [sentences, tokens].
        tokens: float [sentences, tokens, hidden], 0 at padding.
        embeddings: float [sentences, hidden]: the mean over tokens, of length 1.
    """

    ids: np.ndarray
    tokens: np.ndarray
    embeddings: np.ndarray


def main() -> int:
    """Prints both tables; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.real_checkpoint", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, metavar="FOLDER")
    parser.add_argument("--transformers", action="store_true", help="compare with transformers")
    return command.run("real_checkpoint", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        Console().print(round_trips(arguments.checkpoint, Path(scratch)))
        if arguments.transformers:
            folders = {"converted": Path(scratch) / "huggingface"}
            if (arguments.checkpoint / "config.json").is_file():
                folders = {"as published": arguments.checkpoint} | folders
            Console().print(beside_transformers(ours(arguments.checkpoint), folders))


def round_trips(checkpoint: Path, scratch: Path) -> Table:
    """The table of conversions, whose folders stay in `scratch`."""
    weights, expected = bits(checkpoint), ours(checkpoint)
    table = Table("format", "same bits", "same outputs", "write, s", "read, s", "MiB")
    for form in FORMATS:
        folder, back = scratch / form, scratch / f"{form}_back"
        writing = timed(conversion.convert, checkpoint, folder, form)
        timed(conversion.convert, folder, back, "bert_tf")
        found, outputs = bits(back), ours(back)
        same = sum(found.get(name) == value for name, value in weights.items())
        table.add_row(
            form,
            f"{same} of {len(weights)}",
            "yes" if all(map(np.array_equal, outputs, expected)) else "no",
            f"{writing:.1f}",
            f"{timed(Encoder.from_checkpoint, folder):.1f}",
            f"{sum(file.stat().st_size for file in folder.iterdir()) / 2**20:.1f}",
        )
    return table


def bits(checkpoint: Path) -> dict[str, bytes]:
    """The bytes of every weight that the checkpoint has."""
    found = reading.find(checkpoint)
    model = from_checkpoint.build(found, checkpoint)
    loaded = found.fill(model).loaded
    variables = weight_names(model)
    return {name: variables[name].numpy().tobytes() for name in loaded}


def ours(checkpoint: Path) -> Outputs:
    """What bert_tf computes from the sentences themselves."""
    with contextlib.redirect_stderr(io.StringIO()):
        encoder = Encoder.from_checkpoint(checkpoint)
    inputs = Preprocessor(Tokenizer.from_checkpoint(checkpoint), padding="batch")(list(SENTENCES))
    tokens = encoder(inputs)["sequence_output"].numpy()
    return _outputs(inputs["input_word_ids"].numpy(), tokens, inputs["input_mask"].numpy())


def beside_transformers(expected: Outputs, folders: dict[str, Path]) -> Table:
    """The table of differences from transformers' outputs for each folder."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    table = Table("in transformers", "missing", "unexpected", "ids", "token vectors", "embeddings")
    for name, folder in folders.items():
        model, info = transformers.AutoModel.from_pretrained(
            folder, output_loading_info=True, attn_implementation="eager"
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        given = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
        with torch.no_grad():
            tokens = model.eval()(**given).last_hidden_state.numpy()
        found = _outputs(given["input_ids"].numpy(), tokens, given["attention_mask"].numpy())
        table.add_row(
            name,
            *(str(len(info[f"{kind}_keys"])) for kind in ("missing", "unexpected")),
            str((found.ids != expected.ids).sum()),
            f"{np.abs(found.tokens - expected.tokens).max():.1e}",
            f"{np.abs(found.embeddings - expected.embeddings).max():.1e}",
        )
    return table


def timed(work: Callable, *arguments: object) -> float:
    """Seconds that `work(*arguments)` takes; its output is not shown."""
    start = time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):
        work(*arguments)
    return time.perf_counter() - start


def _outputs(ids: np.ndarray, tokens: np.ndarray, mask: np.ndarray) -> Outputs:
    tokens = tokens * mask[..., np.newaxis]
    means = tokens.sum(axis=1) / mask.sum(axis=1, keepdims=True)
    return Outputs(ids, tokens, means / np.linalg.norm(means, axis=-1, keepdims=True))


if __name__ == "__main__":
    sys.exit(main())
