"""Writes the export of a checkpoint.

python -m benchmarks.serving.exporting CHECKPOINT OUT TASK PRECISION
"""

import sys
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

import bert_tf
from benchmarks.serving import texts
from bert_tf.checkpoints import reading
from bert_tf.encoder.encoder import INPUTS
from bert_tf.export.saving import save
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.export.service import Service, Signature, Tensors, ids
from bert_tf.tasks import from_checkpoint


class LastLayer(Service):
    """Token ids -> `last_layer`, float32 [batch, length, hidden]: what every export computes.

    Args:
        encoder: in the form of an export.
        tokenizer: the checkpoint's.
    """

    task = "encoding"

    def __init__(self, encoder: ServedModel, tokenizer: bert_tf.Tokenizer):
        super().__init__(tokenizer)
        self._encoder = encoder
        self._compute = encoder.function(lambda inputs: encoder.encode(inputs).restore())

    def signatures(self) -> dict[str, Signature]:
        example = {name: [[1, 0]] for name in INPUTS}
        return {"serving_default": Signature(ids(), self.answer, example)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """The inputs are those of `Encoder`."""
        return {"last_layer": tf.cast(self._compute(dict(inputs)), tf.float32)}

    def facts(self) -> dict[str, Any]:
        return self._encoder.facts()

    def attributes(self) -> dict[str, Any]:
        return {"weights": self._encoder.variables}


def main(checkpoint: str, out: str, task: str, precision: str) -> None:
    """Writes the export; "encoding" has no head, other tasks have the checkpoint's head."""
    if task == LastLayer.task:
        encoder = bert_tf.Encoder(reading.find(checkpoint).encoder)
        reading.find(checkpoint).fill(encoder)
        tokenizer = bert_tf.Tokenizer.from_checkpoint(checkpoint)
        save({"": LastLayer(ServedModel(encoder, Form(precision)), tokenizer)}, out)
        return
    settings = {"max_length": texts.MAX_LENGTH[task]}
    if task == "question_answering":
        settings |= {
            "stride": texts.STRIDE,
            "n_best": texts.N_BEST,
            "max_answer_length": texts.MAX_ANSWER,
        }
    else:
        # As transformers calls classes that have no names.
        found = from_checkpoint.find(checkpoint).description
        numbered = [f"LABEL_{number}" for number in range(found.head["num_classes"])]
        settings["labels"] = found.labels or numbered
    model = bert_tf.load(checkpoint, **settings)
    model.export(out, precision=precision)


if __name__ == "__main__":
    main(*sys.argv[1:])
