"""Writing task models as LiteRT files."""

import os
from pathlib import Path
from typing import Any

from bert_tf.compat import lite_interpreter, unresolved_operation
from bert_tf.errors import UserError
from bert_tf.export.litert.conversion import convert
from bert_tf.export.litert.form import LiteForm
from bert_tf.export.litert.lite_file import SUFFIX, described
from bert_tf.export.service import record_of
from bert_tf.io.atomic import atomic_path
from bert_tf.io.remote import exists, local_path


def save_lite(model: Any, out: str | os.PathLike, form: LiteForm) -> Path:
    """Writes a task model as a LiteRT file; see `TaskModel.export`."""
    path = new_file(out, SUFFIX, "a LiteRT file")
    form, of_strings = form.checked(model), form.inputs == "strings"
    network = convert(model, form)
    try:
        lite_interpreter(network, 1, with_text=of_strings)
    except (ValueError, RuntimeError) as error:  # no kernel computes one of its operations
        missing = unresolved_operation(error)
        if missing is None:
            raise
        raise UserError(
            f"LiteRT has no operation {missing}, which this {type(model).__name__} uses to read "
            "strings; export a file that takes ids"
        ) from None
    answers = model.strings_form() if of_strings else model.device_form()
    lengths = form.lengths or (model.max_length,)
    record = record_of(model, lengths, form.inputs, form.precision)
    # What does not fit into the longest row is read as the model reads longer texts.
    longest, settings = lengths[-1], record.model["settings"]
    if model.long_text == "windows":
        settings["max_windows"] = longest // model.max_length
    else:
        settings["max_length"] = longest
    with atomic_path(path, is_file=True, is_new=True) as new:
        new.write_bytes(described(model, network, answers, record))
    return path


def new_file(out: str | os.PathLike, suffix: str, kind: str) -> Path:
    """The path of a file to write. Raises UserError if it has another suffix, or is there."""
    path = local_path(out)
    if path.suffix != suffix:
        raise UserError(f"the name of {kind} must end in {suffix}, unlike {path}")
    if exists(path):
        raise UserError(f"{path} exists already; remove it or choose another file")
    return path
