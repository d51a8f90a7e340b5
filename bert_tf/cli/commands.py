"""What each command of the command line does with its arguments.

They are checked without TensorFlow, so that help and mistakes answer at once; what computes is
imported by the command that needs it.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from bert_tf.config.reading import load_config_for
from bert_tf.config.run import RunConfig
from bert_tf.console import print_metrics, stages
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, write_text
from bert_tf.quiet import prepare_to_serve


def demo(arguments: argparse.Namespace) -> None:
    """Pre-trains, fine-tunes and exports on text that is on every machine."""
    from bert_tf.demo import run

    run(arguments.out)


def vocab(arguments: argparse.Namespace) -> None:
    """Learns a vocabulary."""
    from bert_tf.io.vocabulary import file_text
    from bert_tf.text.vocabulary_learning import (
        coverage_report,
        learn_from_texts,
        learn_vocabulary,
    )

    size, lower_case = arguments.size, not arguments.cased
    # The path comes first, so that a path that cannot be written is reported before the work.
    with atomic_path(arguments.out, is_file=True) as new, stages() as progress:
        if arguments.format is None:
            learned = learn_vocabulary(arguments.input, size, lower_case, progress)
        else:
            texts = _texts(Corpus(arguments.input, arguments.format), progress)
            learned = learn_from_texts(texts, size, lower_case, progress)
        new.write_text(file_text(learned.pieces), encoding="utf-8", newline="\n")
    print(coverage_report(learned), end="")


def _texts(corpus: Corpus, progress: Callable[[str, int, int], None]) -> Iterator[str]:
    """Each document as one text, one sentence per line; reports how much of the corpus is done."""
    for document in corpus:
        progress("counting words", corpus.position, corpus.size)
        yield "\n".join(document)
    progress("counting words", corpus.size, corpus.size)


def pretrain_data(arguments: argparse.Namespace) -> None:
    """Tokenizes a corpus, or makes its examples."""
    loaded = load_config_for("pretrain-data", arguments.config, arguments.settings)
    if arguments.tfrecords and arguments.beam is not None:
        raise UserError("--tfrecords cannot be written by --beam; write token files with --beam")
    if arguments.naming != "google" and not arguments.tfrecords:
        raise UserError("--naming is for --tfrecords; add that, or leave --naming out")
    from bert_tf.data.corpora import beam_shards, pretraining_data
    from bert_tf.data.records import writing as record_writing
    from bert_tf.runs.vocabulary import settle
    from bert_tf.text import Tokenizer

    settled, vocabulary = settle(loaded)
    vocab = settled.tokenizer.vocab or vocabulary.removesuffix("\n").split("\n")
    tokenizer = Tokenizer(vocab, settled.tokenizer.settled_lower_case)
    if arguments.tfrecords:
        record_writing.write_records(settled, tokenizer, arguments.out, arguments.naming)
    elif arguments.beam is not None:
        beam_shards.build(settled, tokenizer, arguments.out, arguments.beam)
    else:
        pretraining_data.build(settled, tokenizer, arguments.out)


def pretrain(arguments: argparse.Namespace) -> None:
    """Pre-trains a model."""
    loaded = load_config_for("pretrain", arguments.config, arguments.settings)
    _join_workers(arguments, loaded)
    from bert_tf import runs

    print_metrics(runs.pretrain(loaded, arguments.out))


def finetune(arguments: argparse.Namespace) -> None:
    """Fine-tunes a model."""
    loaded = load_config_for("finetune", arguments.config, arguments.settings)
    _join_workers(arguments, loaded)
    from bert_tf import runs

    print_metrics(runs.finetune(loaded, arguments.out))


def _join_workers(arguments: argparse.Namespace, loaded: RunConfig) -> None:
    """Says in TensorFlow's way which of the workers this process is."""
    workers, number = arguments.workers, arguments.worker
    if (workers is None) != (number is None):
        raise UserError("--workers and --worker belong together; name both")
    if workers is None:
        return
    if loaded.train.strategy != "multi_worker":
        raise UserError(
            "--workers is for train.strategy multi_worker; add --set train.strategy=multi_worker"
        )
    if not 0 <= number < len(workers):
        raise UserError(f"--worker {number} is none of {len(workers)} workers; they begin with 0")
    task = {"type": "worker", "index": number}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})


def evaluate(arguments: argparse.Namespace) -> None:
    """Measures a run."""
    from bert_tf import runs

    print_metrics(runs.evaluate(arguments.run, arguments.data))


def predict(arguments: argparse.Namespace) -> None:
    """Asks a model."""
    if bool(arguments.texts) == bool(arguments.input):
        raise UserError("predict needs either texts or --input FILE; see bert-tf predict --help")
    prepare_to_serve()
    from bert_tf.predict import run

    run(
        arguments.model,
        arguments.texts,
        arguments.input,
        arguments.output,
        arguments.signature,
    )


def export(arguments: argparse.Namespace) -> None:
    """Writes a SavedModel."""
    from bert_tf.export.run import export_run

    export_run(
        arguments.source,
        arguments.out,
        kind=arguments.kind,
        pooling=arguments.pooling,
        precision=arguments.precision,
        freeze=arguments.freeze,
        version=arguments.version,
        device=arguments.device,
        pair=arguments.pair,
        unanswerable=arguments.unanswerable,
        max_length=arguments.max_length,
        labels=arguments.labels,
    )


def convert(arguments: argparse.Namespace) -> None:
    """Rewrites a checkpoint."""
    if arguments.verify and arguments.to != "model_garden":
        raise UserError("--verify is for --to model_garden; leave it out")
    from bert_tf.checkpoints import conversion, model_garden_classes
    from bert_tf.tasks import loading

    if arguments.verify:
        model_garden_classes.require()  # before the work
    conversion.convert(arguments.source, arguments.destination, arguments.to, loading.find)
    if arguments.verify:
        _verify(arguments.destination)


def _verify(folder: str) -> None:
    """Prints the difference between what Model Garden's classes and ours compute.

    Raises:
        UserError: it is too large.
    """
    from bert_tf.checkpoints import model_garden_classes
    from bert_tf.tasks import loading

    checkpoint = loading.find(folder)
    model = loading.build(checkpoint, folder)
    checkpoint.fill(model)
    difference = model_garden_classes.verify(Path(folder), checkpoint.description, model)
    if not difference <= model_garden_classes.TOLERANCE:
        raise UserError(
            f"Model Garden computes other outputs from {folder}: they differ by {difference:.2g}, "
            f"more than {model_garden_classes.TOLERANCE:.0e}; the warnings above may say why"
        )
    print(f"Model Garden opens {folder}; outputs differ by {difference:.1e} at most")


def report(arguments: argparse.Namespace) -> None:
    """Writes a page about runs."""
    from bert_tf.report import report as write

    write(arguments.runs, arguments.out)


def schema(arguments: argparse.Namespace) -> None:
    """Prints the JSON Schema of configurations, or writes it."""
    from bert_tf.config.schema import schema as of_files

    text = json.dumps(of_files(), indent=2, ensure_ascii=False) + "\n"
    if arguments.out is None:
        print(text, end="")
    else:
        write_text(arguments.out, text)


def inspect(arguments: argparse.Namespace) -> None:
    """Writes a page about a model."""
    if arguments.rows < 1:
        raise UserError(f"--rows must be at least 1, not {arguments.rows}")
    from bert_tf.interpret import inspect as write
    from bert_tf.interpret.given import rows_of

    names = ("text", "text_a", "text_b", "question", "context", "choices")
    rows = rows_of({name: getattr(arguments, name) for name in names})
    write(arguments.run, rows, arguments.out, arguments.rows, arguments.input)
