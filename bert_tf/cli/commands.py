"""The commands of the command line. The docstring of a command is its help, with examples.

Each command imports what it needs. So help and messages about wrong arguments appear at once,
without TensorFlow and pydantic.
"""

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.cli.command import check_output
from bert_tf.console import print_metrics, stages
from bert_tf.dependencies import optional, prepare_to_serve
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, write_text
from bert_tf.io.files import ending
from bert_tf.io.remote import local_path

if TYPE_CHECKING:
    from bert_tf.config.run import RunConfig


def demo(arguments: argparse.Namespace) -> None:
    """Go from text to answers on real text, in minutes on 2 cores.

    bert-tf demo
    bert-tf demo --out /tmp/demo
    """
    from bert_tf.experiments.demo import run

    run(arguments.out)


def vocab(arguments: argparse.Namespace) -> None:
    """Learn a WordPiece vocabulary from text files, or extend that of a checkpoint.

    bert-tf vocab --input corpus/*.txt --size 8000 --out vocab.txt
    bert-tf vocab --input news.txt --size 30000 --out vocab.txt --cased
    bert-tf vocab --input articles.jsonl --format jsonl --size 30000 --out vocab.txt
    bert-tf vocab --extend bert-base-uncased --input notes.txt --size 32000 --out bert-of-notes
    """
    if arguments.extend is not None and arguments.cased:
        raise UserError("--extend keeps the casing of the checkpoint; remove --cased")
    from bert_tf.data.corpora.corpus import find_files
    from bert_tf.io.vocabulary import file_text
    from bert_tf.runs.extending import extend, learned
    from bert_tf.text.vocabulary_learning import coverage_report

    out, size, form = arguments.out, arguments.size, arguments.format
    with stages() as progress:
        if arguments.extend is not None:
            found = extend(arguments.extend, find_files(arguments.input), size, out, form, progress)
        else:
            # Opened first, so that a path that cannot be written is reported at once.
            with atomic_path(out, is_file=True) as new:
                files = find_files(arguments.input)
                check_output({"out": local_path(out), "input": files})
                found = learned(files, size, not arguments.cased, form, progress)
                new.write_text(file_text(found.pieces), encoding="utf-8", newline="\n")
    print(coverage_report(found), end="")


def pretrain_data(arguments: argparse.Namespace) -> None:
    """Tokenize a corpus once, for any number of pre-training runs.

    bert-tf pretrain-data pretraining.yaml --out tokens
    bert-tf pretrain-data pretraining.yaml --out records --tfrecords --set train.max_length=512
    bert-tf pretrain-data pretraining.yaml --out /shared/tokens --beam --runner=FlinkRunner --flink_master=HOST:8081
    """  # noqa: E501
    loaded = _config("pretrain-data", arguments)
    if arguments.tfrecords and arguments.beam is not None:
        raise UserError("--tfrecords and --beam cannot be combined; remove one of them")
    if arguments.naming != "google" and not arguments.tfrecords:
        raise UserError("--naming requires --tfrecords; add --tfrecords or remove --naming")
    from bert_tf.data.corpora import beam_shards, pretraining_data
    from bert_tf.data.records import writing as record_writing
    from bert_tf.runs.vocabulary import settle
    from bert_tf.text import Tokenizer

    settled, vocabulary = settle(loaded)
    pieces = vocabulary.removesuffix("\n").split("\n")
    tokenizer = Tokenizer.of(pieces, settled.tokenizer.settings)
    if arguments.tfrecords:
        record_writing.write_records(settled, tokenizer, arguments.out, arguments.naming)
    elif arguments.beam is not None:
        beam_shards.build(settled, tokenizer, arguments.out, arguments.beam)
    else:
        pretraining_data.build(settled, tokenizer, arguments.out)


def pretrain(arguments: argparse.Namespace) -> None:
    """Pre-train BERT on text; the same command resumes a run that stopped.

    bert-tf pretrain pretraining.yaml --out runs/pretraining
    bert-tf pretrain pretraining.yaml --out runs/long --set train.steps=100000
    bert-tf pretrain pretraining.yaml --out /shared/run --set train.strategy=multi_worker --workers one:2222 other:2222 --worker 0
    """  # noqa: E501
    loaded = _config("pretrain", arguments)
    _join_workers(arguments, loaded)
    from bert_tf import runs

    print_metrics(runs.pretrain(loaded, arguments.out))


def adapt(arguments: argparse.Namespace) -> None:
    """Continue the pre-training of a checkpoint on text of a domain; the same command resumes.

    bert-tf adapt google-bert/bert-base-uncased --text notes --out runs/notes
    bert-tf adapt bert-base-uncased --text news.jsonl --out runs/news --masking 0.3 --epochs 3
    bert-tf adapt runs/pretraining --text a.txt b.txt --out runs/more --steps 2000 --batch-size 16
    """
    from bert_tf.runs.adapting import adapt as continued

    print_metrics(continued(**vars(arguments)))


def finetune(arguments: argparse.Namespace) -> None:
    """Fine-tune BERT for a task; the same command resumes a run that stopped.

    bert-tf finetune reviews.yaml --out runs/reviews
    bert-tf finetune reviews.yaml --out runs/slow --set train.learning_rate=2e-5
    bert-tf finetune reviews.yaml --out runs/search --set 'train.seed=[1,2,3]'
    bert-tf --quiet finetune reviews.yaml --out runs/reviews | jq .accuracy
    """
    loaded = _config("finetune", arguments)
    _join_workers(arguments, loaded)
    from bert_tf import runs

    print_metrics(runs.finetune(loaded, arguments.out))


def _config(command: str, arguments: argparse.Namespace) -> Any:
    from bert_tf.config.reading import load_config_for
    from bert_tf.config.run import FinetuningRun, PretrainingRun

    kind = PretrainingRun if command.startswith("pretrain") else FinetuningRun
    return load_config_for(command, kind, arguments.config, arguments.settings)


def _join_workers(arguments: argparse.Namespace, loaded: "RunConfig") -> None:
    """Sets TF_CONFIG, from which TensorFlow learns which of the workers this process is."""
    workers, number = arguments.workers, arguments.worker
    if (workers is None) != (number is None):
        raise UserError("--workers and --worker must be given together; add the missing one")
    if workers is None:
        return
    if loaded.train.strategy != "multi_worker":
        raise UserError(
            "--workers requires train.strategy multi_worker; add --set train.strategy=multi_worker"
        )
    if not 0 <= number < len(workers):
        raise UserError(
            f"--worker is {number}, but --workers has {len(workers)} entries; give a number from "
            f"0 to {len(workers) - 1}"
        )
    task = {"type": "worker", "index": number}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})


def check(arguments: argparse.Namespace) -> None:
    """Look for what is odd in training and dev data, before training.

    bert-tf check reviews.yaml --out data.html
    bert-tf check reviews/train.tsv --task classification --checkpoint bert-base-uncased
    bert-tf check train.json --task question_answering --checkpoint runs/a --set data.format=squad
    """
    from bert_tf.config.reading import config_of
    from bert_tf.config.yaml_files import Tree

    path = Path(arguments.config)
    if arguments.checkpoint:
        checkpoint = json.dumps(arguments.checkpoint, ensure_ascii=False)
        arguments.settings = [f"init.checkpoint={checkpoint}", *arguments.settings]
    if arguments.task is None:
        config = _config("check", arguments)
    else:
        data = {"path": str(path.parent), "train": path.name, "format": ending(path)}
        keys = {"task": arguments.task, "data": data, "train": {"epochs": 1}}
        config = config_of(Tree(keys, {(): str(path)}), arguments.settings)
    from bert_tf.interpret.data_quality import check as look

    look(config, arguments.out)


def evaluate(arguments: argparse.Namespace) -> None:
    """Evaluate a run on its dev data or other data; write metrics and predictions.

    bert-tf evaluate runs/reviews
    bert-tf evaluate runs/reviews --data reviews/unseen.tsv --confidence 0.95
    """
    from bert_tf import runs

    print_metrics(runs.evaluate(arguments.run, arguments.data, arguments.confidence))


def predict(arguments: argparse.Namespace) -> None:
    """Predict with a model: strings in, answers out as JSON lines.

    bert-tf predict saved_models/reviews "what a lovely film" "two hours of nothing"
    bert-tf predict saved_models/reviews --input texts.txt --output answers.jsonl
    # lines such as {"question": "Who sat?", "context": "The cat sat on the mat."}
    bert-tf predict saved_models/squad --input questions.jsonl
    bert-tf predict saved_models/names "Ada lived in London" --signature entities --min-score 0.9
    head texts.txt | bert-tf predict saved_models/reviews --input -
    bert-tf predict runs/reviews "what a lovely film" --abstain 0.8
    """
    if bool(arguments.texts) == bool(arguments.input):
        raise UserError(
            "predict requires either texts or --input FILE, not both; see bert-tf predict --help"
        )
    _prepare_to_serve(arguments.model)
    from bert_tf.asking.predict import run

    given = {n: getattr(arguments, n) for n in ("abstain", "min_score", "aggregation", "top_k")}
    options = {name: value for name, value in given.items() if value is not None}
    files = arguments.input, arguments.output
    run(arguments.model, arguments.texts, *files, arguments.signature, options)


def embed(arguments: argparse.Namespace) -> None:
    """Write the vectors of a file of texts; the same command resumes after a stop.

    bert-tf embed sentence-transformers/all-MiniLM-L6-v2 passages.txt --out vectors.npy
    bert-tf embed embedder.keras passages.jsonl --out vectors.npy --dtype float16
    bert-tf embed saved_models/vectors questions.txt --out questions.npy --prompt query
    """
    _prepare_to_serve(arguments.model)
    from bert_tf.asking.embed import embed as write

    options = vars(arguments)
    write(options.pop("model"), options.pop("file"), **options)


def mine(arguments: argparse.Namespace) -> None:
    """Find hard negatives: passages that a model ranks high and that are not answers.

    bert-tf mine sentence-transformers/all-MiniLM-L6-v2 --data pairs.tsv --out train.jsonl
    bert-tf mine embedder.keras --data pairs.jsonl --corpus passages.txt --out train.jsonl
    bert-tf mine runs/embedder --data pairs.csv --out train.jsonl --range 10 50 --margin 0.05
    bert-tf mine runs/embedder --data beir/scifact/qrels/train.tsv --out train.jsonl --negatives 5
    """
    from bert_tf.asking.mine import mine as write

    write(**vars(arguments))


def export(arguments: argparse.Namespace) -> None:
    """Export a model as a SavedModel that takes strings, or as a LiteRT file.

    bert-tf export runs/reviews --out saved_models/reviews
    bert-tf export reviews.keras --out saved_models/reviews --version 2
    bert-tf export runs/reviews --out saved_models/sure --abstain 0.8
    bert-tf export runs/reviews --out saved_models/fast --freeze --precision bfloat16
    bert-tf export org/mrpc-model --out saved_models/mrpc --pair
    bert-tf export runs/pretraining --out saved_models/fill --kind mlm
    bert-tf export bert-base-uncased --out saved_models/vectors --kind embedding --pooling mean
    bert-tf export bert-base-uncased --out saved_models/hub --kind hub
    bert-tf export runs/reviews --out reviews.tflite --format litert --precision int8
    """
    from bert_tf.export.run import export_run

    export_run(**vars(arguments))


def shrink(arguments: argparse.Namespace) -> None:
    """Distil a fine-tuned model into fewer layers and export it for phones, with a report.

    bert-tf shrink runs/reviews --out runs/small --layers 3 --precision int8
    bert-tf shrink runs/reviews --out runs/small --layers 3 --set train.epochs=6
    """
    from bert_tf.runs.shrinking import shrink

    shrink(**vars(arguments))


def convert(arguments: argparse.Namespace) -> None:
    """Convert a checkpoint to the format of another program.

    bert-tf convert runs/reviews reviews_for_transformers --to huggingface
    bert-tf convert uncased_L-12_H-768_A-12 bert_base --to bert_tf
    bert-tf convert hf://google-bert/bert-base-cased cased --to tf1
    bert-tf convert runs/reviews for_model_garden --to model_garden --verify
    bert-tf convert google-bert/bert-base-uncased --check
    """
    if arguments.check:
        if arguments.destination or arguments.to:
            raise UserError("--check writes nothing; remove DST and --to, or --check")
        from bert_tf.tasks.checking import findings

        for name, value in findings(arguments.source).items():
            print(f"{name:14}{value}")
        return
    if not (arguments.destination and arguments.to):
        missing = "--to" if arguments.destination else "DST"
        raise UserError(
            f"the following arguments are required: {missing}; see bert-tf convert --help"
        )
    if arguments.verify and arguments.to != "model_garden":
        raise UserError("--verify requires --to model_garden; remove --verify")
    from bert_tf.checkpoints import conversion, model_garden_classes
    from bert_tf.io.remote import fetched
    from bert_tf.tasks import from_checkpoint

    if arguments.verify:
        model_garden_classes.require()  # reports a missing package before the work
    folder = arguments.destination
    conversion.convert(arguments.source, folder, arguments.to, from_checkpoint.find)
    if not arguments.verify:
        return
    checkpoint = from_checkpoint.find(folder)
    model = from_checkpoint.build(checkpoint, folder)
    checkpoint.fill(model)
    difference = model_garden_classes.verify(fetched(folder), checkpoint.description, model)
    if not difference <= model_garden_classes.TOLERANCE:
        raise UserError(
            f"Model Garden's outputs for {folder} differ from those of bert_tf by "
            f"{difference:.2g}, more than {model_garden_classes.TOLERANCE:.0e}; see the warnings "
            "above"
        )
    print(f"Model Garden opens {folder}; the outputs differ by at most {difference:.1e}")


def push(arguments: argparse.Namespace) -> None:
    """Publish a model on the Hugging Face Hub, in the format of transformers, with a model card.

    bert-tf push runs/reviews hf://org/reviews --license apache-2.0 --dry-run
    bert-tf push runs/reviews hf://org/reviews --license apache-2.0 --private
    bert-tf push embedder.keras hf://org/embedder --revision v2
    """
    from bert_tf.runs.publishing import push as publish

    publish(**vars(arguments))


def report(arguments: argparse.Namespace) -> None:
    """Write a page that compares the results of runs with the paper's.

    bert-tf report runs/* --out results.html
    bert-tf report runs/cola runs/squad --out results.md
    """
    from bert_tf.experiments.report import report as write

    write(arguments.runs, arguments.out)


def serve(arguments: argparse.Namespace) -> None:
    """Answer requests over HTTP, and on a page at the server's address.

    bert-tf serve runs/reviews
    bert-tf serve saved_models/reviews answers=runs/squad --port 8080
    bert-tf serve serving/models.config --host 0.0.0.0 --allow bert.example.org
    """
    for module in ("uvicorn", "starlette", "prometheus_client"):
        optional(module, "serve", "bert-tf serve")
    _prepare_to_serve(*(each.partition("=")[2] or each for each in arguments.models))
    from bert_tf import serve as server

    limits = server.Limits(arguments.most_bytes, arguments.most_rows, arguments.most_waiting)
    server.serve(arguments.models, arguments.host, arguments.port, arguments.allow, limits)


def schema(arguments: argparse.Namespace) -> None:
    """Print the JSON Schema of configurations, with which editors complete and check them.

    bert-tf schema
    bert-tf schema --out bert_tf.schema.json
    """
    from bert_tf.config.schema import schema as of_files

    text = json.dumps(of_files(), indent=2, ensure_ascii=False) + "\n"
    if arguments.out is None:
        print(text, end="")
    else:
        write_text(arguments.out, text)


def inspect(arguments: argparse.Namespace) -> None:
    """Write a page with pictures of attention, token importances, errors and calibration.

    bert-tf inspect runs/reviews --text "what a lovely film" "two hours of nothing"
    bert-tf inspect runs/mrpc --text-a "He sleeps." --text-b "He is asleep."
    bert-tf inspect runs/squad --question "Who sat?" --context "The cat sat down."
    bert-tf inspect runs/swag --context "The pot boils." --choices "It sings." "It snows."
    bert-tf inspect runs/ranker --query "Who sat?" --passages "The cat sat." "A log burns."
    bert-tf inspect runs/reviews --rows 1000 --out reviews.html
    bert-tf inspect reviews.keras --text "what a lovely film" --out film.html
    bert-tf inspect bert-base-uncased --text "the cat sat" --out cat.html
    """
    if arguments.rows < 1:
        raise UserError(f"--rows must be at least 1, not {arguments.rows}")
    from bert_tf.interpret import inspect as write
    from bert_tf.interpret import rows_of

    columns = "text text_a text_b question context query choices passages candidates".split()
    rows = rows_of({name: getattr(arguments, name) for name in columns})
    write(arguments.run, rows, arguments.out, arguments.rows, arguments.input)


def _prepare_to_serve(*models: str) -> None:
    from bert_tf.asking.record import is_float32

    # In float32, fixed weights gain nothing, and take as much memory again as the encoder.
    prepare_to_serve(fixed_weights=not all(map(is_float32, models)))
