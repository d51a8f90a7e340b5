"""Finding out what a checkpoint is."""

import re
from pathlib import Path

from bert_tf.checkpoints import (
    download,
    google,
    huggingface,
    model_garden,
    native,
    plain_json,
    tf_files,
    tf_hub,
)
from bert_tf.checkpoints.checkpoint import Checkpoint as Checkpoint
from bert_tf.errors import UserError

# What each checkpoint of a run holds: a file that tells its state, and in that the step of the
# checkpoint that the run would end with.
STATE_FILE = "state.json"
KEPT = "kept"

# One of the files of a TensorFlow checkpoint: its prefix, and what each of them is.
_TENSORFLOW_FILE = re.compile(r"(.+)\.(?:index|meta|data-\d{5}-of-\d{5})")


def find(path: str | Path) -> Checkpoint:
    """Detects and opens the checkpoint at `path`.

    Args:
        path: a run folder; a folder of ours, of Hugging Face, of google-research or of Model
            Garden; a SavedModel of TF Hub; one file of these; a prefix such as
            "model.ckpt-1000"; or "hf://org/name".

    Raises:
        UserError: there is nothing at `path`, nothing that is a checkpoint, or its files are
            damaged or do not belong together.
    """
    if download.is_address(path):
        path = download.fetch(str(path))
    path = Path(path)
    if path.is_dir():
        return _in_folder(path)
    named = _TENSORFLOW_FILE.fullmatch(path.name)
    prefix = path.with_name(named[1]) if named else path
    if prefix.with_name(f"{prefix.name}.index").is_file():
        return _tensorflow(prefix)
    if path.is_file():
        return _in_folder(path.parent)
    raise UserError(
        f"checkpoint not found: {path}; give a folder, or hf://org/name to download one"
    )


def newest(run: Path) -> Path:
    """The newest checkpoint of a run folder. Raises UserError when there is none yet."""
    steps = sorted((run / native.CHECKPOINTS).glob("step-*"))
    if not steps:
        raise UserError(f"{run} has no checkpoint yet; let its training save one first")
    return steps[-1]


def kept(run: Path) -> Path:
    """The checkpoint whose weights a run ends with: the newest, or the one that this names as best.

    Raises:
        UserError: there is none yet, or the newest one's state is damaged.
    """
    last = newest(run)
    if not (last / STATE_FILE).is_file():
        return last
    step = plain_json.read_object(last / STATE_FILE, "state of the checkpoint").get(KEPT)
    return step_folder(last.parent, step) if isinstance(step, int) else last


def step_folder(checkpoints: Path, step: int) -> Path:
    """The folder of the checkpoint after `step` updates."""
    return checkpoints / f"step-{step:08d}"


def _in_folder(folder: Path) -> Checkpoint:
    if (folder / native.CHECKPOINTS).is_dir():
        return native.open_checkpoint(kept(folder))
    if (folder / native.DESCRIPTION_FILE).is_file():
        return native.open_checkpoint(folder)
    if (folder / tf_hub.SAVED_MODEL_FILE).is_file():
        return tf_hub.open_checkpoint(folder)
    if (folder / huggingface.CONFIG_FILE).is_file():
        return huggingface.open_checkpoint(folder)
    prefix = tf_files.find_prefix(folder)
    if prefix is not None:
        return _tensorflow(prefix)
    raise UserError(
        f"no checkpoint in {folder}: expected a run folder, {native.DESCRIPTION_FILE} (bert_tf), "
        f"{huggingface.CONFIG_FILE} (Hugging Face), {google.PREFIX}.index (google-research or "
        f"Model Garden) or {tf_hub.SAVED_MODEL_FILE} (TF Hub)"
    )


def _tensorflow(prefix: Path) -> Checkpoint:
    """google-research's checkpoint or Model Garden's: only the latter's is a graph of objects."""
    found = tf_files.open_prefix(prefix)
    form = model_garden if tf_files.OBJECT_GRAPH in found.shapes else google
    return form.open_checkpoint(prefix, found)
