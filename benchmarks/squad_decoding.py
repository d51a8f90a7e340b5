"""Compares windows, training labels and decoded answers with google-research/bert's run_squad.

    python -m benchmarks.squad_decoding --reference bert/run_squad.py --data dev-v1.1.json \\
        --vocab vocab.txt [--run RUN]

`--reference` is that repository's `run_squad.py`, with its other modules next to it (written for
TensorFlow 1; nothing of it is part of this project). The steps are:

1. the windows over every context: ids, masks, segments and the tokens with most context;
2. the tokens at which the answer (the first one of each question) starts and ends, as for training;
3. the answers decoded from gold positions, also by the reference, scored by the official metrics;
4. the answers that both decode from the same logits, without and with "no answer": the logits of a
   fine-tuned run (`--run`), else noise with a bump at the gold positions.
"""

import argparse
import dataclasses
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.arguments import existing
from bert_tf.cli import command
from bert_tf.data.columns import Columns
from bert_tf.models.logits import PADDING_SCORE
from bert_tf.tasks.question_answering.metrics import answer_metrics
from bert_tf.tasks.question_answering.spans import SpanRules, decode
from bert_tf.tasks.question_answering.squad import (
    Answer,
    AnswerSpan,
    answer_bytes,
    given_texts,
    ids_of,
    read_squad,
)
from bert_tf.text import Tokenizer, WindowPreprocessor
from bert_tf.text.windows import QuestionWindows, find_answers

_CHUNK = 64
_SHOWN = 12
# The defaults of the reference's flags.
_LENGTH, _STRIDE, _QUESTION = 384, 128, 64


def main() -> int:
    """Prints what every comparison found; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.squad_decoding", __doc__)
    parser.add_argument("--reference", type=existing, required=True, help="path of run_squad.py")
    parser.add_argument("--data", type=existing, required=True, help="a SQuAD file of version 1.1")
    parser.add_argument("--vocab", type=existing, required=True, help="the vocabulary")
    parser.add_argument("--cased", action="store_true", help="do not lower-case")
    parser.add_argument("--run", type=existing, help="a fine-tuned run for the logits")
    parser.add_argument("--questions", type=int, help="only so many questions from the start")
    return command.run("squad_decoding", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    questions = read_squad(arguments.data).first(arguments.questions)
    tokenizer = Tokenizer(arguments.vocab, lower_case=not arguments.cased)
    ours = list(_our_windows(questions, tokenizer))
    reference = Reference(arguments.reference, arguments.vocab, not arguments.cased)
    with tempfile.TemporaryDirectory() as folder:
        examples, theirs = reference.features(questions, Path(folder))
        compare_windows(ours, theirs)
        compare_labels(ours, theirs, tokenizer)
        labels = [(each.start_position, each.end_position) for each in theirs]
        gold = _bumps(*zip(*labels, strict=True))
        answers = reference.answers(examples, theirs, gold, False, Path(folder))
        print_gold("the first answers, decoded by the reference", questions, answers)
        answers = _our_answers(ours, _bumps_of(ours), unanswerable=False)
        print_gold("the first answers", questions, answers)
        chosen = _of_whole_pieces(questions, tokenizer)
        windows = list(_our_windows(chosen, tokenizer))
        answers = _our_answers(windows, _bumps_of(windows), unanswerable=False)
        longest = SpanRules().max_answer_length
        print_gold(f"the first answers of whole pieces, at most {longest}", chosen, answers)
        logits = _model_logits(arguments.run, ours) if arguments.run else _noise(ours)
        for unanswerable in (False, True):
            expected = reference.answers(examples, theirs, logits, unanswerable, Path(folder))
            compare_answers(questions, ours, logits, unanswerable, expected)


class Chunk(NamedTuple):
    """Windows of some questions, and the answers' tokens in them: int32 [windows] each."""

    windows: QuestionWindows
    contexts: list[str]
    starts: np.ndarray
    ends: np.ndarray


class Reference:
    """google-research/bert's own code, with TensorFlow 1's names where it looks for them."""

    def __init__(self, path: Path, vocab: Path, lower_case: bool):
        self._module = load_reference(path)
        self._lower_case = lower_case
        self._tokenizer = self._module.tokenization.FullTokenizer(str(vocab), lower_case)
        self._module.FLAGS([""])

    def features(self, questions: Columns, folder: Path) -> tuple[list[Any], list[Any]]:
        """Its examples and windows, labelled with the first answers as for training."""
        rows = [
            {
                "context": context,
                "qas": [
                    {
                        "id": id,
                        "question": question,
                        "answers": [{"text": answer.text, "answer_start": answer.start}],
                    }
                ],
            }
            for id, question, context, (answer, *_) in zip(
                ids_of(questions), *questions.values, questions.known_targets(), strict=True
            )
        ]
        path = folder / "questions.json"
        path.write_text(json.dumps({"data": [{"paragraphs": rows}]}), encoding="utf-8")
        examples = self._module.read_squad_examples(str(path), is_training=True)
        if len(examples) != len(questions):
            raise SystemExit(f"the reference leaves {len(questions) - len(examples)} questions out")
        features: list[Any] = []
        self._module.convert_examples_to_features(
            examples, self._tokenizer, _LENGTH, _STRIDE, _QUESTION, True, features.append
        )
        return examples, features

    def answers(
        self,
        examples: list[Any],
        features: list[Any],
        logits: tuple[np.ndarray, np.ndarray],
        unanswerable: bool,
        folder: Path,
    ) -> list[str]:
        """Its answers for logits [windows, seq_len]."""
        self._module.FLAGS.version_2_with_negative = unanswerable
        results = [
            self._module.RawResult(feature.unique_id, start.tolist(), end.tolist())
            for feature, start, end in zip(features, *logits, strict=True)
        ]
        files = [str(folder / name) for name in ("predictions", "nbest", "odds")]
        rules = SpanRules()
        self._module.write_predictions(
            examples, features, results, rules.n_best, rules.max_answer_length,
            self._lower_case, *files,
        )  # fmt: skip
        predictions = json.loads(Path(files[0]).read_text(encoding="utf-8"))
        return [predictions[each.qas_id] for each in examples]


def compare_windows(ours: Sequence[Chunk], theirs: Sequence[Any]) -> None:
    """Prints how many windows are the same in everything the model and the decoding see."""
    same = total = 0
    for windows, feature in zip(_each_window(ours), theirs, strict=True):
        best = np.zeros(_LENGTH, bool)
        best[[place for place, is_best in feature.token_is_max_context.items() if is_best]] = True
        expected = (feature.input_ids, feature.input_mask, feature.segment_ids, best)
        same += all(np.array_equal(a, b) for a, b in zip(windows, expected, strict=True))
        total += 1
    print(f"windows: {same} of {total} are the same", flush=True)


def compare_labels(ours: Sequence[Chunk], theirs: Sequence[Any], tokenizer: Tokenizer) -> None:
    """Prints how many windows have the same labels, and some that do not."""
    expected = np.array([(each.start_position, each.end_position) for each in theirs])
    found = np.array([pair for each in ours for pair in zip(each.starts, each.ends, strict=True)])
    same = (expected == found).all(axis=1)
    print(f"labels: {same.sum()} of {len(same)} windows have the same start and end")
    for place in np.flatnonzero(~same)[:_SHOWN]:
        (a, b), (c, d) = expected[place], found[place]
        tokens = theirs[place].tokens
        print(f"  reference {' '.join(tokens[a : b + 1])!r}, ours {' '.join(tokens[c : d + 1])!r}")


def print_gold(name: str, questions: Columns, answers: Sequence[str]) -> None:
    """Prints the metrics of answers decoded from gold positions alone, with their `name`."""
    given = given_texts(questions)
    metrics = answer_metrics(given, dict(zip(given, answers, strict=True)))
    scores = f"exact_match {metrics['exact_match']:.2f}, f1 {metrics['f1']:.2f}"
    print(f"gold positions of {name}: {scores}", flush=True)


def compare_answers(
    questions: Columns,
    ours: Sequence[Chunk],
    logits: tuple[np.ndarray, np.ndarray],
    unanswerable: bool,
    expected: Sequence[str],
) -> None:
    """Prints how many answers are the same, and some that are not."""
    found = _our_answers(ours, logits, unanswerable)
    pairs = list(zip(expected, found, strict=True))
    same = sum(a == b for a, b in pairs)
    different = [i for i, (a, b) in enumerate(pairs) if a.split() != b.split()]
    kind = "with no answer" if unanswerable else "always an answer"
    print(
        f"answers, {kind} ({sum(not each for each in found)} are none): {same} of {len(found)}, "
        f"{same / len(found):.3%}, the same in every byte; "
        f"{1 - len(different) / len(found):.3%} but for white space, which the reference joins"
    )
    for i in different[:_SHOWN]:
        print(f"  {ids_of(questions)[i]}: reference {expected[i]!r}, ours {found[i]!r}")


def _of_whole_pieces(questions: Columns, tokenizer: Tokenizer) -> Columns:
    """The questions, each with its answers of whole pieces before all of its answers."""

    def is_whole(answer: Answer, context: str) -> bool:
        _, starts, ends = (each.numpy() for each in tokenizer.tokenize_with_offsets(context))
        start, end = answer_bytes([answer], context)
        pieces = ((starts < end) & (ends > start)).nonzero()[0]
        whole = starts[pieces[0]] == start and ends[pieces[-1]] == end
        return whole and len(pieces) <= SpanRules().max_answer_length

    targets = [
        (*filter(lambda each, of=context: is_whole(each, of), answers), *answers)
        for context, answers in zip(
            questions.column("context"), questions.known_targets(), strict=True
        )
    ]
    return dataclasses.replace(questions, targets=targets)


def _our_windows(questions: Columns, tokenizer: Tokenizer) -> Iterator[Chunk]:
    preprocess = WindowPreprocessor(tokenizer, _LENGTH, _STRIDE, _QUESTION)
    for first in range(0, len(questions), _CHUNK):
        chunk = questions.take(range(first, min(first + _CHUNK, len(questions))))
        asked, contexts = chunk.values
        windows = preprocess((asked, contexts))
        starts, ends = find_answers(windows, *AnswerSpan().numbers(chunk).T)
        yield Chunk(windows, contexts, starts.numpy(), ends.numpy())


def _each_window(chunks: Sequence[Chunk]) -> Iterator[tuple[np.ndarray, ...]]:
    for each in chunks:
        features = each.windows.features
        names = ("input_word_ids", "input_mask", "input_type_ids")
        columns = [features[name].numpy() for name in names]
        yield from zip(*columns, each.windows.has_most_context.numpy(), strict=True)


def _bumps_of(chunks: Sequence[Chunk], height: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """Start and end logits, float32 [windows, seq_len]: `height` at the label, else 0."""
    starts, ends = zip(*((each.starts, each.ends) for each in chunks), strict=True)
    return _bumps(np.concatenate(starts), np.concatenate(ends), height)


def _bumps(
    starts: Sequence[int], ends: Sequence[int], height: float = 10.0
) -> tuple[np.ndarray, np.ndarray]:
    """As `_bumps_of`, from the labels of all windows."""
    logits = np.zeros([2, len(starts), _LENGTH], np.float32)
    for each, places in zip(logits, (starts, ends), strict=True):
        each[np.arange(len(starts)), places] = height
    return logits[0], logits[1]


def _noise(chunks: Sequence[Chunk]) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bump at the label, or in one window of four at [CLS], rounded to have ties."""
    draw = np.random.default_rng(0)
    mask = np.concatenate([each.windows.features["input_mask"].numpy() for each in chunks])
    is_none = draw.random(len(mask)) < 0.25
    logits = []
    for each in _bumps_of(chunks, height=6.0):
        each[is_none] = 0.0
        each[is_none, 0] = 6.0
        each = np.round(each + draw.standard_normal(each.shape, np.float32), 1)
        logits.append(np.where(mask == 1, each, np.float32(PADDING_SCORE)))
    return logits[0], logits[1]


def _model_logits(run: Path, chunks: Sequence[Chunk]) -> tuple[np.ndarray, np.ndarray]:
    """Start and end logits of the model of a run: float32 [windows, seq_len] each."""
    from bert_tf.checkpoints import reading
    from bert_tf.tasks import from_checkpoint
    from bert_tf.text.parts import map_in_chunks

    checkpoint = reading.find(run)
    model = from_checkpoint.build(checkpoint, checkpoint.folder)
    checkpoint.fill(model)
    answer = tf.function(lambda features: map_in_chunks(model, features), reduce_retracing=True)
    logits = [answer(each.windows.features) for each in chunks]
    return tuple(
        np.concatenate([each[name].numpy() for each in logits]) for name in ("start", "end")
    )


def _our_answers(
    chunks: Sequence[Chunk], logits: tuple[np.ndarray, np.ndarray], unanswerable: bool
) -> list[str]:
    rules = SpanRules(unanswerable=unanswerable)
    answer = tf.function(lambda *inputs: decode(*inputs, rules).answer, reduce_retracing=True)
    texts: list[str] = []
    first = 0
    for each in chunks:
        here = slice(first, first + len(each.starts))
        start, end = (tf.constant(part[here]) for part in logits)
        answers = answer(start, end, each.windows, tf.constant(each.contexts))
        texts += [text.decode() for text in answers.numpy()]
        first = here.stop
    return texts


def load_reference(path: Path) -> ModuleType:
    """The reference's module, with TensorFlow 1's names where it looks for `tensorflow`."""
    spec = importlib.util.spec_from_file_location("reference_run_squad", path)
    module = importlib.util.module_from_spec(spec)
    tensorflow = sys.modules["tensorflow"]
    sys.modules["tensorflow"] = tf.compat.v1
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules["tensorflow"] = tensorflow
        sys.path.remove(str(path.parent))
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    return module


if __name__ == "__main__":
    sys.exit(main())
