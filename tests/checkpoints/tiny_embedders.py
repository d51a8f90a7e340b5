"""The tiny folders of sentence-transformers, and the vectors that it gives with them.

They are of `tests/fixtures/make_sentence_transformers.py`.
"""

import json
from pathlib import Path

import numpy as np

from bert_tf.checkpoints import tensors
from tests.checkpoints.tiny_models import FIXTURES
from tests.checkpoints.tiny_models import change as change

GOLDEN = dict(np.load(FIXTURES / "sentence_transformers.npz"))
FILES = json.loads(str(GOLDEN["files"]))
FOLDERS = tuple(FILES["folders"])
TEXTS = [str(text) for text in GOLDEN["texts"]]
# The first vectors of a folder are without the name of a prompt, the others of these.
PROMPTS = (None, "query", "document", "joined", "long")
TOLERANCE = 1e-5
ALL = "cls+max+mean+mean_sqrt_len_tokens+weightedmean+lasttoken"


def arrays(prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with a prefix, by their names without it."""
    return {n.removeprefix(prefix): a for n, a in GOLDEN.items() if n.startswith(prefix)}


def write(folder: Path, name: str, transformer: str = "") -> Path:
    """Writes a folder as sentence-transformers 6.2.0 does, but for the place of the transformer."""
    (folder / transformer).mkdir(parents=True, exist_ok=True)
    for path, text in (FILES["shared"] | FILES["folders"][name]).items():
        is_inner = path in FILES["shared"] or path.startswith(("tokenizer", "sentence_bert"))
        file = folder / (transformer if is_inner else "") / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    tensors.save(folder / transformer / "model.safetensors", arrays("encoder/"))
    dense = arrays(f"weights/{name}/")
    for layer in {each.split("/")[0] for each in dense}:
        own = {n.split("/")[1]: a for n, a in dense.items() if n.startswith(f"{layer}/")}
        tensors.save(folder / layer / "model.safetensors", own)
    return folder
