"""Writes the model of transformers as another runtime reads it.

python -m benchmarks.speed.converting openvino|onnx SETTINGS OUT
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

# The inputs of a converted model.
NAMES = ("input_ids", "attention_mask", "token_type_ids")


class Traceable(torch.nn.Module):
    """A model with the tensors that a work compares as its inputs and output.

    Args:
        settings: of a contestant; the work is encode or classify.
    """

    def __init__(self, settings: dict[str, Any]):
        super().__init__()
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.is_encoder = settings["work"] == "encode"
        kind = (
            transformers.BertModel
            if self.is_encoder
            else transformers.BertForSequenceClassification
        )
        # "eager" takes the same processor time as "sdpa" in OpenVINO, which makes one op of either,
        # and 4 % less in ONNX Runtime: two layers of width 768, 8 x 128 tokens, float32.
        self.model = kind.from_pretrained(settings["weights"], attn_implementation="eager").eval()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor,
    ) -> torch.Tensor:
        """The last layer, or probabilities; the inputs are int64 [batch, seq_len]."""
        outputs = self.model(input_ids, attention_mask, token_type_ids)
        if self.is_encoder:
            return outputs.last_hidden_state
        return outputs.logits.softmax(-1)


def to_openvino(settings: dict[str, Any], out: Path) -> None:
    """Writes OUT, an .xml, and its weights next to it."""
    import openvino

    with torch.inference_mode():
        model = openvino.convert_model(
            Traceable(settings),
            example_input=_example(),
            input=[(name, [-1, -1]) for name in NAMES],
        )
    # The precision of the computation is set when the model is loaded.
    openvino.save_model(model, out, compress_to_fp16=False)


def to_onnx(settings: dict[str, Any], out: Path) -> None:
    """Writes OUT, an .onnx."""
    torch.onnx.export(
        Traceable(settings),
        tuple(_example().values()),
        out,
        input_names=list(NAMES),
        output_names=["output"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in NAMES},
        dynamo=False,
    )


def _example() -> dict[str, torch.Tensor]:
    """Inputs of any size, to trace with."""
    return {name: torch.ones([2, 5], dtype=torch.int64) for name in NAMES}


if __name__ == "__main__":
    _, runtime, given, place = sys.argv
    {"openvino": to_openvino, "onnx": to_onnx}[runtime](json.loads(given), Path(place))
