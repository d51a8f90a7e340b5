"""Writes the export of a checkpoint.

python -m benchmarks.serving.exporting CHECKPOINT OUT TASK PRECISION
"""

import sys

import bert_tf
from benchmarks.serving import texts
from bert_tf.tasks import from_checkpoint


def main(checkpoint: str, out: str, task: str, precision: str) -> None:
    """The weights of the head are the checkpoint's."""
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
