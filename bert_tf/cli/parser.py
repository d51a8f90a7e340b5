"""The command line `bert-tf COMMAND`, or `python -m bert_tf COMMAND`: its options.

`bert_tf.cli.commands` has the commands themselves; their docstrings are the help.
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
from bert_tf.dependencies import check_backend
from bert_tf.export import FORMATS, KINDS, LITE_PRECISIONS, PRECISIONS, SAVED_MODEL

PROGRAM = "bert-tf"

_EXAMPLES = """\
from text to answers:
  bert-tf vocab --input corpus/*.txt --size 8000 --out vocab.txt
  bert-tf pretrain pretraining.yaml --out runs/pretraining
  bert-tf finetune reviews.yaml --out runs/reviews
  bert-tf evaluate runs/reviews
  bert-tf export runs/reviews --out saved_models/reviews
  bert-tf predict saved_models/reviews "what a lovely film"

or watch the whole way in a few minutes, on text that every machine has:
  bert-tf demo

`bert-tf COMMAND --help` describes a command in detail, with examples."""

_STOPPED = "stopped; run the same command again: training and embed resume where they stopped"
_PRETRAINING_CONFIG = "a configuration with task: pretraining"


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
    """Also accepts texts after an option, as argparse does since Python 3.13."""

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        arguments, rest = self.parse_known_args(args, namespace)
        if not hasattr(arguments, "texts") or any(each.startswith("-") for each in rest):
            if rest:
                self.error(f"unrecognized arguments: {' '.join(rest)}")
            return arguments
        arguments.texts = [*arguments.texts, *rest]
        return arguments


def make_parser() -> Parser:
    """The parser of all commands; `docs/reference/command_line.md` is generated from it."""
    parser = _Parser(
        prog=PROGRAM,
        description="BERT in TensorFlow: learn a vocabulary, pre-train, fine-tune, evaluate, "
        "export and predict.",
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
        help="folder for the results (default: %(default)s)",
    )


def _add_vocab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", metavar="FILE", nargs="+", required=True, help="UTF-8 text files"
    )
    parser.add_argument(
        "--format",
        choices=CORPUS_FORMATS,
        help="format of the files, one of those of data.format in pre-training (default: all of "
        "a file is text)",
    )
    parser.add_argument(
        "--size", metavar="N", type=int, required=True, help="number of entries in the vocabulary"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="vocabulary file to write")
    parser.add_argument(
        "--cased",
        action="store_true",
        help="keep capitals and accents (default: lower-case the text and strip accents)",
    )


def _add_pretrain_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG.yaml", help=_PRETRAINING_CONFIG)
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the token files")
    _add_settings(parser)
    parser.add_argument(
        "--tfrecords",
        action="store_true",
        help="write TFRecords of finished examples instead of token files (each document "
        "data.dupe_factor times)",
    )
    parser.add_argument(
        "--naming",
        choices=("google", "model_garden"),
        default="google",
        help="naming scheme of the features in TFRecords (default: %(default)s)",
    )
    parser.add_argument(
        "--beam",
        metavar="FLAG",
        nargs=argparse.REMAINDER,
        help="run as an Apache Beam pipeline, which writes the same files; all arguments after "
        "it are Beam's flags (default: run on this machine)",
    )


def _add_pretrain(parser: argparse.ArgumentParser) -> None:
    _add_run_arguments(parser, _PRETRAINING_CONFIG)


def _add_finetune(parser: argparse.ArgumentParser) -> None:
    _add_run_arguments(parser, "a configuration with any task except pretraining")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="data in the format of the run (default: the dev data of the run)",
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a SavedModel, a LiteRT file, a run folder, a .keras file, a checkpoint with its "
        "head, or a name on the Hugging Face Hub",
    )
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="texts to predict")
    parser.add_argument(
        "--input",
        metavar="FILE",
        help="file of texts, one per line, or of JSON lines keyed by the inputs of the model; - "
        "is standard input",
    )
    parser.add_argument("--output", metavar="FILE", help="file to write (default: standard output)")
    parser.add_argument(
        "--signature",
        metavar="NAME",
        default="serving_default",
        help="signature to call, if the model has several (default: %(default)s)",
    )


def _add_embed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a SavedModel or a LiteRT file that returns vectors, a run folder, a .keras file, a "
        "checkpoint of any format, or a name on the Hugging Face Hub",
    )
    parser.add_argument(
        "file", metavar="FILE", help="texts, one per line, or JSON lines with the key text"
    )
    parser.add_argument(
        "--out",
        metavar="FILE.npy",
        required=True,
        help="matrix to write: one row per text, in the order of the file",
    )
    parser.add_argument(
        "--prompt",
        metavar="NAME",
        help="name of a prompt of the model, which is put before each text",
    )
    parser.add_argument(
        "--batch-size", metavar="N", type=int, help="number of texts in a batch (default: 32)"
    )
    parser.add_argument(
        "--max-length",
        metavar="N",
        type=int,
        help="maximum number of tokens in a text (default: that of the model)",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16"),
        default="float32",
        help="type of the numbers in the matrix (default: %(default)s)",
    )


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="SRC",
        help="a run folder, a .keras file, a checkpoint of any format, or a name on the Hugging "
        "Face Hub",
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder or .tflite file to write"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=SAVED_MODEL,
        help="tf_saved_model: a SavedModel that takes strings; litert: a LiteRT file for phones "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="task",
        help="what the export does: task: the task that the model was fine-tuned for; hub: an "
        "encoder and its preprocessor in the form of TF Hub; mlm: fill gaps; nsp: predict "
        "whether a text follows another one; embedding: return vectors (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--pooling",
        metavar="NAME",
        nargs="+",
        choices=POOLINGS,
        help="how the vector of a text is computed: the last layer at [CLS] (cls) or [SEP] "
        "(last_token), its mean or maximum over the text (mean, mean_sqrt_len, "
        "weighted_mean, max), the output of the pooler (pooled), or the concatenation of "
        "several of them (default: that of the checkpoint, or mean)",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="number format (default: %(default)s); bfloat16 is for SavedModels; float16 and "
        "int8 are for LiteRT files, whose weights then take half or a quarter of the space",
    )
    parser.add_argument(
        "--freeze", action="store_true", help="store the weights as constants, in that precision"
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "any"),
        default="cpu",
        help="cpu: compute on the CPU, in the form that is fastest there; any: the server "
        "chooses the device, for example a GPU (default: %(default)s)",
    )
    parser.add_argument(
        "--version",
        metavar="N",
        type=int,
        help="write to DIR/N, as TensorFlow Serving requires (with --kind hub: "
        "DIR/preprocessor/N and DIR/encoder/N)",
    )
    lite = parser.add_argument_group("LiteRT files", "Options for --format litert.")
    lite.add_argument(
        "--inputs",
        choices=("ids", "strings"),
        default="ids",
        help="ids: token ids, mask and segments, for apps with a tokenizer; strings: texts "
        "(default: %(default)s)",
    )
    _add_lite_arguments(lite)
    bare = parser.add_argument_group(
        "bare checkpoints", "Settings that checkpoints of other programs do not hold."
    )
    bare.add_argument("--pair", action="store_true", help="the inputs are pairs of texts")
    bare.add_argument(
        "--unanswerable", action="store_true", help="a context may not contain an answer"
    )
    bare.add_argument(
        "--max-length", metavar="N", type=int, help="maximum number of tokens in an input"
    )
    bare.add_argument(
        "--labels",
        metavar="NAME",
        nargs="+",
        help="names of the classes, in the order of the model's outputs",
    )


def _add_shrink(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN", help="folder of a finished fine-tuning run")
    parser.add_argument(
        "--out", metavar="RUN", required=True, help="folder for the run of the small model"
    )
    parser.add_argument(
        "--layers", metavar="N", type=int, required=True, help="number of layers of the small model"
    )
    parser.add_argument(
        "--precision",
        choices=LITE_PRECISIONS,
        default="int8",
        help="number format of the LiteRT file (default: %(default)s); see bert-tf export --help",
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
        help="lengths of rows in tokens; a text uses the shortest one that it fits into "
        "(default: the maximum length of the model)",
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="with --precision int8: texts, in a form of predict --input, from which fixed value "
        "ranges are computed; some accelerators require these",
    )


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SRC",
        help="a checkpoint of any format, a run folder, or a name on the Hugging Face Hub",
    )
    parser.add_argument("destination", metavar="DST", help="folder to write")
    parser.add_argument(
        "--to",
        choices=("bert_tf", "huggingface", "sentence_transformers", "tf1", "model_garden"),
        required=True,
        help="format to write: bert_tf, huggingface (transformers), sentence_transformers (for "
        "embedders), tf1 (google-research/bert) or model_garden (tf-models-official)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="open the result with Model Garden's own classes and compare the outputs (requires "
        "the extra model-garden)",
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folders of finished runs")
    parser.add_argument(
        "--out", metavar="FILE", required=True, help="page to write: NAME.html or NAME.md"
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        help="a run folder, a .keras file, or a checkpoint of any format, with or without a "
        "head; only a run folder has dev data",
    )
    inputs = parser.add_argument_group(
        "texts",
        "Inputs of the model, with the names that `bert-tf predict` uses. Each option takes "
        "one or more.",
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
            help=f"the {name} for one {first}; repeat the option for each --{first}",
        )
    inputs.add_argument(
        "--input",
        metavar="FILE",
        help="read the inputs from a file instead: texts, one per line, or JSON lines keyed by "
        "the inputs of the model",
    )
    parser.add_argument(
        "--out", metavar="FILE.html", help="page to write (default: RUN/inspect.html)"
    )
    parser.add_argument(
        "--rows",
        metavar="N",
        type=int,
        default=300,
        help="number of rows of the dev data to show (default: %(default)s)",
    )


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", help="file to write (default: standard output)")


def _add_run_arguments(parser: argparse.ArgumentParser, config_help: str) -> None:
    parser.add_argument("config", metavar="CONFIG.yaml", help=config_help)
    parser.add_argument(
        "--out", metavar="RUN", required=True, help="run folder to write or to resume"
    )
    _add_settings(parser)
    parser.add_argument(
        "--workers",
        metavar="HOST:PORT",
        nargs="+",
        help="addresses of all processes, for train.strategy multi_worker, in the same order in "
        "every process (default: those of the environment variable TF_CONFIG)",
    )
    parser.add_argument(
        "--worker",
        metavar="N",
        type=int,
        help="position of this process in --workers; the first is 0",
    )


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="keys that override those of the file, such as train.seed=1",
    )
