"""`bert-tf embed`: the vectors of many texts, as a matrix in a file of NumPy.

The file is written in blocks, so that there may be more texts and vectors than fit into memory.
If the process is killed, the same command continues after the last block.
"""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import bert_tf
from bert_tf.asking import Answers, CutTexts, batches, columns_of
from bert_tf.asking.record import find_saved_model, is_saved_model
from bert_tf.asking.row_files import read_blocks
from bert_tf.asking.session import SessionModel
from bert_tf.console import Progress, logger
from bert_tf.errors import UserError
from bert_tf.io.files import checksum
from bert_tf.io.remote import fetched
from bert_tf.io.resumable import resumable_file

DTYPES = ("float32", "float16")
_RANKS = {"text": 1}
_OUTPUT = "embedding"


def embed(
    path: str,
    input_file: str,
    out: str | os.PathLike,
    prompt: str | None = None,
    batch_size: int | None = None,
    max_length: int | None = None,
    dtype: str = "float32",
    truncate_dim: int | None = None,
    vectors: str | None = None,
) -> None:
    """Writes the vector of each text of a file, as `TextEmbedder.predict` gives it.

    The arguments are those of `bert-tf embed --help`. `numpy.load(out, mmap_mode="r")` opens the
    result, float [texts, width], without reading it.
    """
    for name, value in (("--batch-size", batch_size), ("--max-length", max_length)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    given = {"max_length": max_length, "truncate_dim": truncate_dim, "vectors": vectors}
    settings = {name: value for name, value in given.items() if value is not None}
    if not os.path.isfile(fetched(input_file, is_file=True)):
        raise UserError(f"{input_file} is not a file; embed reads its texts from a file")
    count = sum(len(rows) for rows, _ in read_blocks(input_file, _RANKS))
    if not count:
        raise UserError(f"{input_file} holds no texts; give at least one")
    model, identity = _open(path, **settings)
    signature = "serving_default" if prompt is None else prompt
    if (ranks := model.ranks(signature)) != _RANKS:
        raise UserError(f"{path} takes {', '.join(ranks)}, not single texts; give an embedder")
    work = {
        "bert_tf": bert_tf.__version__,
        "texts": checksum(input_file),
        "model": identity,
        "signature": signature,
        "dtype": dtype,
    }
    with (
        resumable_file(out, work) as file,
        Progress("embedding", count, start=file.done, unit="texts") as progress,
    ):
        if file.done:
            logger.info(f"{out}: resuming after the first {file.done:,} of {count:,} texts")
        cuts, skipped = CutTexts(model), file.done
        for block, _ in read_blocks(input_file, _RANKS):
            rows, skipped = block[skipped:], max(skipped - len(block), 0)
            if not rows:
                continue
            matrix, done = np.zeros((0, 0), np.float32), file.done
            for chosen, outputs in batches(model, signature, rows, batch_size, verbose=0):
                if _OUTPUT not in outputs:
                    names = ", ".join(outputs)
                    raise UserError(
                        f"{path} gives {names}, which are not vectors; give an embedder"
                    )
                if not matrix.size:
                    found = outputs[_OUTPUT]
                    kept = np.int8 if found.dtype == np.int8 else dtype
                    matrix = np.zeros((len(rows), found.shape[1]), kept)
                matrix[chosen] = outputs[_OUTPUT]
                done += len(chosen)
                progress.update(done, line=True)
            start = b"" if file.done else _header(count, matrix)
            file.append(start + matrix.tobytes(), done)
            cuts.add(columns_of(rows))
    cuts.say()
    logger.info(f"{out}: {count:,} vectors")


def _open(path: str, **settings: Any) -> tuple[Answers, str]:
    """The model, and a digest that changes whenever the vectors may change."""
    digest = hashlib.sha256()

    def check_none(kind: str) -> None:
        for name in settings:
            what = "length is" if name == "max_length" else "vectors are"
            option = name.replace("_", "-")
            raise UserError(f"{path} is a {kind}, whose {what} fixed; omit --{option}")

    if is_saved_model(path):
        check_none("SavedModel")
        folder = find_saved_model(path)
        for file in sorted(each for each in Path(folder).rglob("*") if each.is_file()):
            digest.update(f"{file.relative_to(folder)} {checksum(file)}\n".encode())
        if session := SessionModel.load(folder):
            return session, digest.hexdigest()
    # These import TensorFlow and Keras.
    from bert_tf.asking.frozen import FrozenTask, frozen_kind
    from bert_tf.checkpoints.description import describe
    from bert_tf.tasks.embedding.model import TextEmbedder

    if is_saved_model(path):
        return FrozenTask.load(folder), digest.hexdigest()
    if kind := frozen_kind(path):
        check_none(kind)
        return FrozenTask.load(path), checksum(path)
    model = TextEmbedder.from_checkpoint(path, **settings)
    digest.update(json.dumps(describe(model, model.tokenizer).to_dict()).encode())
    for weight in model.get_weights():
        digest.update(np.ascontiguousarray(weight).data)
    return model, digest.hexdigest()


def _header(count: int, vectors: np.ndarray) -> bytes:
    """The start of a `.npy` file that will hold `count` such vectors."""
    form = np.lib.format
    header = form.header_data_from_array_1_0(vectors) | {"shape": (count, vectors.shape[1])}
    written = io.BytesIO()
    form.write_array_header_1_0(written, header)
    return written.getvalue()
