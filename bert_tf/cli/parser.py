"""The command line: `bert-tf` or `python -m bert_tf`, and then what to do.

Here are the options. `bert_tf.cli.commands` does the work; the docstrings there are the help.
"""

import argparse
import inspect
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import bert_tf
from bert_tf.checkpoints.embedder import POOLINGS
from bert_tf.cli import commands
from bert_tf.cli.command import Parser, run
from bert_tf.data.corpora.corpus import FORMATS as CORPUS_FORMATS
from bert_tf.export import FORMATS, KINDS, LITE_PRECISIONS, PRECISIONS, SAVED_MODEL
from bert_tf.quiet import check_backend

PROGRAM = "bert-tf"

_EXAMPLES = """\
from text to answers:
  bert-tf vocab --input corpus/*.txt --size 8000 --out vocab.txt
  bert-tf pretrain pretraining.yaml --out runs/pretraining
  bert-tf finetune reviews.yaml --out runs/reviews
  bert-tf evaluate runs/reviews
  bert-tf export runs/reviews --out saved_models/reviews
  bert-tf predict saved_models/reviews "what a lovely film"

or see all of it happen in a few minutes, on text that is on every machine:
  bert-tf demo

`bert-tf COMMAND --help` describes each in detail, with examples."""

_STOPPED = "stopped; start the same command again: training and embed go on where they stopped"
_PRETRAINING_CONFIG = "a configuration of task pretraining"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; `argv` is the command line without the program's name.

    Returns:
        The exit code of the process, see `bert_tf.cli.command`.
    """

    def work(arguments: argparse.Namespace) -> None:
        check_backend()
        handler = vars(arguments).pop("handler")
        handler(arguments)

    return run(PROGRAM, make_parser(), argv, work, _STOPPED)


class _Parser(Parser):
    """Takes texts that stand behind an option too, as argparse does only since Python 3.13."""

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        arguments, rest = self.parse_known_args(args, namespace)
        if not hasattr(arguments, "texts") or any(each.startswith("-") for each in rest):
            if rest:
                self.error(f"unrecognized arguments: {' '.join(rest)}")
            return arguments
        arguments.texts = [*arguments.texts, *rest]
        return arguments


def make_parser() -> Parser:
    """The parser of all commands; `docs/reference/command_line.md` is made of it too."""
    parser = _Parser(
        prog=PROGRAM,
        description="BERT in TensorFlow: learn a vocabulary, pre-train, fine-tune, evaluate, ask.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {bert_tf.__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command, add_arguments in (
        (commands.demo, _add_demo),
        (commands.vocab, _add_vocab),
        (commands.pretrain_data, _add_pretrain_data),
        (commands.pretrain, _add_pretrain),
        (commands.finetune, _add_finetune),
        (commands.evaluate, _add_evaluate),
        (commands.predict, _add_predict),
        (commands.embed, _add_embed),
        (commands.export, _add_export),
        (commands.shrink, _add_shrink),
        (commands.convert, _add_convert),
        (commands.report, _add_report),
        (commands.inspect, _add_inspect),
        (commands.schema, _add_schema),
    ):
        summary, _, examples = (inspect.getdoc(command) or "").partition(".\n\n")
        subparser = subparsers.add_parser(
            command.__name__.replace("_", "-"),
            help=summary[:1].lower() + summary[1:],
            description=f"{summary}.",
            epilog=f"examples:\n{textwrap.indent(examples, '  ')}",
        )
        subparser.set_defaults(handler=command)
        add_arguments(subparser)
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        metavar="DIR",
        default="runs/demo",
        help="folder of its results (default: %(default)s)",
    )


def _add_vocab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", metavar="FILE", nargs="+", required=True, help="UTF-8 text files"
    )
    parser.add_argument(
        "--format",
        choices=CORPUS_FORMATS,
        help="how the texts are written in them, as for data.format of a pre-training; by default "
        "all that a file holds is text",
    )
    parser.add_argument("--size", metavar="N", type=int, required=True, help="number of pieces")
    parser.add_argument("--out", metavar="FILE", required=True, help="the vocabulary to write")
    parser.add_argument(
        "--cased", action="store_true", help="keep capitals and accents (otherwise lower-cased)"
    )


def _add_pretrain_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG.yaml", help=_PRETRAINING_CONFIG)
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the token files")
    _add_settings(parser)
    parser.add_argument(
        "--tfrecords",
        action="store_true",
        help="write TFRecords of ready examples (data.dupe_factor times each document) instead",
    )
    parser.add_argument(
        "--naming",
        choices=("google", "model_garden"),
        default="google",
        help="whose names the features of TFRecords have (default: %(default)s)",
    )
    parser.add_argument(
        "--beam",
        metavar="FLAG",
        nargs=argparse.REMAINDER,
        help="run as an Apache Beam pipeline; all that follows are Beam's own flags (without any, "
        "it runs here). The files are the same",
    )


def _add_pretrain(parser: argparse.ArgumentParser) -> None:
    _add_run_arguments(parser, _PRETRAINING_CONFIG)


def _add_finetune(parser: argparse.ArgumentParser) -> None:
    _add_run_arguments(parser, "a configuration of any task but pretraining")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--data", metavar="PATH", help="data of the same format as the run's")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a SavedModel, a LiteRT file, a run folder, a .keras file, a checkpoint with its "
        "head, or a name on the Hugging Face Hub",
    )
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="texts to ask about")
    parser.add_argument(
        "--input",
        metavar="FILE",
        help="texts, one per line, or JSON lines keyed by the model's inputs; - is standard input",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="where to write (default: standard output)"
    )
    parser.add_argument(
        "--signature",
        metavar="NAME",
        default="serving_default",
        help="how the model is asked, where it has several signatures (default: %(default)s)",
    )


def _add_embed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a SavedModel or a LiteRT file of vectors, a run folder, a .keras file, a checkpoint "
        "of any format, or a name on the Hugging Face Hub",
    )
    parser.add_argument("file", metavar="FILE", help="texts, one per line, or JSON lines with text")
    parser.add_argument(
        "--out",
        metavar="FILE.npy",
        required=True,
        help="the matrix to write: a row for each text, in the order of the texts",
    )
    parser.add_argument(
        "--prompt", metavar="NAME", help="put this prompt of the model before each text"
    )
    parser.add_argument(
        "--batch-size", metavar="N", type=int, help="texts of a batch (default: 32)"
    )
    parser.add_argument(
        "--max-length",
        metavar="N",
        type=int,
        help="most tokens of a text (default: the model's own)",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16"),
        default="float32",
        help="of the numbers that are written (default: %(default)s)",
    )


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="SRC",
        help="a run folder, a .keras file, a checkpoint of any format, or a name on the Hugging "
        "Face Hub",
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="the folder to write, or the .tflite file"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=SAVED_MODEL,
        help="a SavedModel that takes strings (default: %(default)s), or a LiteRT file for phones",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="task",
        help="what is served: the task of a fine-tuning (the default); the encoder and its "
        "preprocessor as TF Hub has them; the masked language model; next sentences; vectors",
    )
    parser.add_argument(
        "--pooling",
        metavar="NAME",
        nargs="+",
        choices=POOLINGS,
        help="what the vector of a text is: the last layer at [CLS] (cls) or [SEP] (last_token), "
        "its mean or maximum over the text (mean, mean_sqrt_len, weighted_mean, max), the pooler's "
        "output (pooled), or several of them side by side; by default what the checkpoint says, or "
        "else mean",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="what it computes in (default: %(default)s); bfloat16 is for SavedModels, float16 "
        "(weights in half the size) and int8 (in a quarter) are for LiteRT files",
    )
    parser.add_argument(
        "--freeze", action="store_true", help="make the weights constants, in that precision"
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "any"),
        default="cpu",
        help="cpu (the default) computes on the CPU, in the form that is fastest there; any leaves "
        "the device to the server, for example a GPU",
    )
    parser.add_argument(
        "--version",
        metavar="N",
        type=int,
        help="write DIR/N (of hub: DIR/preprocessor/N and DIR/encoder/N), for TensorFlow Serving",
    )
    lite = parser.add_argument_group("LiteRT files", "Options of `--format litert`.")
    lite.add_argument(
        "--inputs",
        choices=("ids", "strings"),
        default="ids",
        help="ids, mask and segments, for which an app needs a tokenizer (the default), or strings",
    )
    _add_lite_arguments(lite)
    bare = parser.add_argument_group(
        "bare checkpoints", "What a checkpoint of another program does not say."
    )
    bare.add_argument("--pair", action="store_true", help="an input is a pair of texts")
    bare.add_argument("--unanswerable", action="store_true", help="a context may hold no answer")
    bare.add_argument("--max-length", metavar="N", type=int, help="most tokens of an input")
    bare.add_argument(
        "--labels", metavar="NAME", nargs="+", help="names of the classes, in their order"
    )


def _add_shrink(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN", help="the folder of a finished fine-tuning")
    parser.add_argument(
        "--out", metavar="RUN", required=True, help="the folder of the small model's run"
    )
    parser.add_argument(
        "--layers", metavar="N", type=int, required=True, help="layers of the small model"
    )
    parser.add_argument(
        "--precision",
        choices=LITE_PRECISIONS,
        default="int8",
        help="of the LiteRT file (default: %(default)s); see export",
    )
    _add_lite_arguments(parser)
    _add_settings(parser)


def _add_lite_arguments(parser: Any) -> None:
    """The options that `export` and `shrink` have in common."""
    parser.add_argument(
        "--lengths",
        metavar="N",
        type=int,
        nargs="+",
        help="tokens of a row, of which the shortest that fits is used; by default the longest "
        "inputs that the model takes",
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="with `--precision int8`: texts, as for `bert-tf predict --input`, from which fixed "
        "ranges of numbers are found; some accelerators require these",
    )


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="SRC", help="a checkpoint of any format, a run folder or hf://org/name"
    )
    parser.add_argument("destination", metavar="DST", help="the folder to write")
    parser.add_argument(
        "--to",
        choices=("bert_tf", "huggingface", "sentence_transformers", "tf1", "model_garden"),
        required=True,
        help="the format: bert_tf, huggingface (transformers), sentence_transformers (of an "
        "embedder), tf1 (google-research/bert) or model_garden (tf-models-official)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="open the result in Model Garden's own classes, and compare what they compute (extra "
        "model-garden)",
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folders of finished runs")
    parser.add_argument(
        "--out", metavar="FILE", required=True, help="the page, NAME.html or NAME.md"
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        help="a run folder, a .keras file, or a checkpoint of any format, with a head or without; "
        "only a run has dev data",
    )
    inputs = parser.add_argument_group(
        "texts", "What the model takes, named as for `bert-tf predict`; each may be several."
    )
    for name, meaning in (
        ("text", "a text of a task on single texts"),
        ("text-a", "the first text of a pair"),
        ("text-b", "the second text of a pair"),
        ("question", "a question on a context"),
        ("context", "the context of a question or of choices"),
        ("query", "a query for passages"),
    ):
        inputs.add_argument(f"--{name}", metavar="TEXT", nargs="+", help=meaning)
    for name, first in (("choices", "context"), ("passages", "query")):
        inputs.add_argument(
            f"--{name}",
            metavar="TEXT",
            nargs="+",
            action="append",
            help=f"the {name} of one {first}; once for each --{first}",
        )
    inputs.add_argument(
        "--input",
        metavar="FILE",
        help="texts, one per line, or JSON lines keyed by the model's inputs, instead",
    )
    parser.add_argument("--out", metavar="FILE.html", help="the page (default: RUN/inspect.html)")
    parser.add_argument(
        "--rows",
        metavar="N",
        type=int,
        default=300,
        help="how many rows of the dev data to show (default: %(default)s)",
    )


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", help="where to write (default: standard output)")


def _add_run_arguments(parser: argparse.ArgumentParser, config_help: str) -> None:
    parser.add_argument("config", metavar="CONFIG.yaml", help=config_help)
    parser.add_argument("--out", metavar="RUN", required=True, help="the run folder")
    _add_settings(parser)
    parser.add_argument(
        "--workers",
        metavar="HOST:PORT",
        nargs="+",
        help="the processes that train.strategy multi_worker trains in, in the same order for all; "
        "by default those of the environment variable TF_CONFIG",
    )
    parser.add_argument(
        "--worker", metavar="N", type=int, help="which of --workers this is; the first is 0"
    )


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="keys to set over the file's, such as train.seed=1",
    )
