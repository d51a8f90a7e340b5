"""Serving a `SpanClassifier`: a question and a context in, the answer out."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.config import RunConfig
from bert_tf.decoding.question_answering import QuestionAnswerer
from bert_tf.decoding.spans import SpanRules
from bert_tf.models import SpanClassifier
from bert_tf.text import Tokenizer, WindowPreprocessor
from export.service import Service, Signature, Tensors, strings

_EXAMPLE = {
    "question": ["Where does the river rise?"],
    "context": ["The river rises in the hills and reaches the sea after ninety miles."],
}
# The reference's, where the model has as many positions.
_MAX_LENGTH = 384


class QuestionAnsweringService(Service):
    """`question`, `context` -> `answer`, `start`, `end`, `score`, `null_score`, n best.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        max_length: tokens in a window over the context; by default 384, or as many as the model has
            positions.
        stride: pieces from the start of a window to that of the next.
        max_question_length: pieces to keep of a question.
        **rules: the fields of `SpanRules`, such as `unanswerable`.

    Raises:
        UserError: a window has no room for the longest question.
    """

    assumed = (
        "every context answers its question, in the reference's windows; for others use "
        "export.save(…, unanswerable=True, max_length=…, stride=…)"
    )

    def __init__(
        self,
        model: SpanClassifier,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        stride: int = 128,
        max_question_length: int = 64,
        **rules: Any,
    ):
        super().__init__(model, tokenizer)
        max_length = max_length or min(_MAX_LENGTH, model.encoder.config.max_position_embeddings)
        windows = WindowPreprocessor(tokenizer, max_length, stride, max_question_length)
        self._answerer = QuestionAnswerer(model, windows, SpanRules(**rules))

    @staticmethod
    def options_of(config: RunConfig) -> dict[str, Any]:
        """See `Service`."""
        data = config.data
        return {
            "max_length": config.train.max_length,
            "stride": data.stride,
            "max_question_length": data.max_question_length,
            "n_best": data.n_best,
            "max_answer_length": data.max_answer_length,
            "unanswerable": data.unanswerable,
            "null_threshold": data.null_threshold or 0.0,
        }

    @staticmethod
    def options_found(metrics: Mapping[str, float]) -> dict[str, Any]:
        """The threshold that the run answered with on its dev data: the configured one, if any."""
        return {name: metrics[name] for name in ("null_threshold",) if name in metrics}

    def signatures(self) -> dict[str, Signature]:
        """One signature."""
        return {"serving_default": Signature(strings(*_EXAMPLE), self.answer, _EXAMPLE)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`answer` string [batch], bytes `start` to `end` (int32) of the context, `score` and
        `null_score` float32, `nbest_answers` string and `nbest_scores` float32 [batch, n].

        See `bert_tf.decoding.spans.Answers`.
        """
        answers = self._answerer(inputs["question"], inputs["context"])
        return {
            "answer": answers.answer,
            "start": answers.start,
            "end": answers.end,
            "score": answers.score,
            "null_score": answers.null_score,
            "nbest_answers": answers.nbest_answers,
            "nbest_scores": answers.nbest_scores,
        }
