"""Writing task models as LiteRT files."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.compat import lite_interpreter, unresolved_operation
from bert_tf.errors import UserError
from bert_tf.export import LITE_PRECISIONS
from bert_tf.export.litert.conversion import Inputs, Rows, convert
from bert_tf.export.litert.lite_file import SUFFIX, described
from bert_tf.export.service import record_of
from bert_tf.io.atomic import atomic_path

# The fewest tokens of a row: [CLS] a [SEP] b [SEP]; a row of questions has one more of a context
# than the longest question.
_LEAST, _BESIDE_QUESTION = 5, 4


@dataclasses.dataclass(frozen=True)
class LiteForm:
    """How a LiteRT file computes.

    Attributes:
        precision: "float32"; "float16" stores the weights in half the size; "int8" stores them in a
            quarter and computes products in int8.
        lengths: tokens of a row, for each signature; None is the `max_length` of the model.
        inputs: "ids" takes ids, mask and segments; "strings" takes texts.
        calibration: with "int8", texts from which the ranges of the products' inputs are found.
    """

    precision: str = "float32"
    lengths: Sequence[int] | None = None
    inputs: Inputs = "ids"
    calibration: Rows | None = None

    def checked(self, model: Any) -> "LiteForm":
        """This form with the lengths for a model.

        Raises:
            UserError: an unknown precision, a calibration without int8, lengths that the model
                does not have, or any number of windows.
        """
        if self.precision not in LITE_PRECISIONS:
            raise UserError(
                f"unknown precision {self.precision!r} for a LiteRT file; choose one of "
                f"{', '.join(LITE_PRECISIONS)}"
            )
        if self.calibration is not None and self.precision != "int8":
            raise UserError("calibration is for precision int8; remove it, or choose int8")
        lengths = self._lengths(model)
        if self.inputs == "strings" and (self.calibration is not None or len(lengths) > 1):
            raise UserError(
                "a file that takes strings has one fixed length and no calibration; remove "
                "lengths and calibration"
            )
        if self.calibration is not None and len(lengths) > 1:
            raise UserError(
                f"a calibration is for one length; give one of {', '.join(map(str, lengths))}"
            )
        return dataclasses.replace(self, lengths=lengths, calibration=self._that_fit(lengths[-1]))

    def _lengths(self, model: Any) -> list[int]:
        """The lengths for a model; one that reads windows has them end to end in a row."""
        longest = model.max_length
        if model.long_text != "windows":
            question = getattr(model, "max_question_length", None)
            least = _LEAST if question is None else question + _BESIDE_QUESTION
            for length in self.lengths or ():
                if not least <= length <= longest:
                    raise UserError(
                        f"length is {length}; it must be from {least} to the max_length of the "
                        f"model, {longest}"
                    )
            return sorted({*(self.lengths or [longest])})
        kind, most = type(model).__name__, model.max_windows
        if most is None:
            raise UserError(
                "a LiteRT file reads a fixed number of windows at most; load the model with one, "
                f"as in {kind}.from_checkpoint(…, max_windows=8), and export that"
            )
        if self.inputs == "strings":
            raise UserError(
                "a LiteRT file that takes strings reads no windows, as this model does; export "
                "one that takes ids, or load the model with long_text='head_and_tail'"
            )
        counts = {most, *(2**power for power in range(most.bit_length()) if 2**power < most)}
        lengths = sorted({*(self.lengths or (longest * count for count in counts))})
        for length in lengths:
            if length % longest or not longest <= length <= longest * most:
                raise UserError(
                    f"length is {length}; a row of this model is 1 to {most} windows "
                    f"(max_windows) of {longest} tokens (max_length)"
                )
        return lengths

    def _that_fit(self, length: int) -> Rows | None:
        """The rows of the calibration of so many tokens at most."""
        if self.calibration is None:
            return None
        fitting = [row for row in self.calibration if len(row["input_mask"]) <= length]
        if not fitting:
            raise UserError(
                f"no text of the calibration fits into {length} tokens; give shorter texts, or a "
                "larger length"
            )
        return fitting


def save_lite(model: Any, out: str | os.PathLike, form: LiteForm) -> Path:
    """Writes a task model as a LiteRT file; see `TaskModel.export`.

    Raises:
        UserError: see `LiteForm.checked`; LiteRT lacks an operation; or the file exists, or cannot
            be written.
    """
    path = Path(out)
    if path.suffix != SUFFIX:
        raise UserError(f"the name of a LiteRT file must end in {SUFFIX}, unlike {path}")
    if os.path.exists(path):
        raise UserError(f"{path} exists already; remove it or choose another file")
    form = form.checked(model)
    lengths = form.lengths or (model.max_length,)
    network = convert(model, lengths, form.inputs, form.precision, form.calibration or ())
    _check_operations(network, model, form)
    answers = model.strings_form() if form.inputs == "strings" else model.device_form()
    record = record_of(model, lengths, form.inputs, form.precision)
    # What does not fit into the longest row is read as the model reads longer texts.
    longest, settings = lengths[-1], record.model["settings"]
    if model.long_text == "windows":
        settings["max_windows"] = longest // model.max_length
    else:
        settings["max_length"] = longest
    with atomic_path(path, is_file=True) as new:
        Path(new).write_bytes(described(model, network, answers, record))
    return path


def _check_operations(network: bytes, model: Any, form: LiteForm) -> None:
    """Raises UserError if a converted network has an operation that no kernel computes."""
    try:
        lite_interpreter(network, 1, with_text=form.inputs == "strings")
    except (ValueError, RuntimeError) as error:
        missing = unresolved_operation(error)
        if missing is None:
            raise
        raise UserError(
            f"LiteRT has no operation {missing}, which this {type(model).__name__} uses to read "
            "strings; export a file that takes ids"
        ) from None
