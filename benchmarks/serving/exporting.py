"""Writes the export of a checkpoint.

python -m benchmarks.serving.exporting CHECKPOINT OUT TASK PRECISION FREEZE
"""

import sys

import bert_tf
import export
from benchmarks.serving import texts
from bert_tf.checkpoints import reading


def main(checkpoint: str, out: str, task: str, precision: str, freeze: str) -> None:
    """The weights of the head are the checkpoint's."""
    found = reading.find(checkpoint)
    model = found.description.build()
    found.fill(model)
    options, labels = {"max_length": texts.MAX_LENGTH[task]}, ()
    if task == "question_answering":
        options |= {
            "stride": texts.STRIDE,
            "n_best": texts.N_BEST,
            "max_answer_length": texts.MAX_ANSWER,
        }
    else:
        # As transformers calls classes that have no names.
        labels = found.description.labels or [f"LABEL_{i}" for i in range(model.num_classes)]
    tokenizer = bert_tf.Tokenizer.from_checkpoint(checkpoint)
    settings = {"precision": precision, "freeze": freeze == "True"}
    export.save(model, tokenizer, out, labels, **settings, **options)


if __name__ == "__main__":
    main(*sys.argv[1:])
