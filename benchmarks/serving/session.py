"""An export called through TensorFlow's C library, as `bert-tf predict` calls it."""

from typing import Any

from benchmarks.serving.contestant import Answerer, run
from benchmarks.serving.texts import OUTPUT
from bert_tf.asking import rows_of
from bert_tf.asking.session import SessionModel
from bert_tf.dependencies import prepare_environment, prepare_to_serve


def load(settings: dict[str, Any]) -> Answerer:
    """A function that answers a batch of texts with the texts of labels or answers."""
    prepare_environment()
    prepare_to_serve(fixed_weights=settings["precision"] != "float32")
    model = SessionModel.load(settings["model"])
    assert model is not None
    output = OUTPUT[settings["task"]]

    def answer(texts: dict[str, list[str]]) -> list[str]:
        outputs = model.ask("serving_default", rows_of([*texts.values()], [*texts]))
        return [text.decode() for text in outputs[output]]

    return answer


if __name__ == "__main__":
    run(load)
