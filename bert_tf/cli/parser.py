"""The options of `bert-tf COMMAND`, or `python -m bert_tf COMMAND`; `commands` has the commands."""

import argparse
import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import bert_tf
from bert_tf.checkpoints.embedder import POOLINGS, VECTORS
from bert_tf.cli import commands
from bert_tf.cli.command import Option, Parser, group, option, run
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


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line, without the program's name; returns the exit code."""

    def work(arguments: argparse.Namespace) -> None:
        check_backend()
        vars(arguments).pop("handler")(arguments)

    return run(PROGRAM, make_parser(), argv, work, _STOPPED)


class _Parser(Parser):
    """Also accepts texts and a destination after an option, as argparse does since Python 3.13."""

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        arguments, rest = self.parse_known_args(args, namespace)
        if not any(each.startswith("-") for each in rest):
            if hasattr(arguments, "texts"):
                arguments.texts, rest = [*arguments.texts, *rest], []
            elif rest and getattr(arguments, "destination", "") is None:
                arguments.destination = rest.pop(0)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
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
    for command, options in _COMMANDS.items():
        summary, _, examples = (inspect.getdoc(command) or "").partition(".\n\n")
        subparser = subparsers.add_parser(
            command.__name__.replace("_", "-"),
            help=summary[:1].lower() + summary[1:],
            description=f"{summary}.",
            epilog=f"examples:\n{textwrap.indent(examples, '  ')}",
        )
        subparser.set_defaults(handler=command)
        for each in options:
            each(subparser)
    return parser


_ABSTAIN = "--abstain P"
_LEAST = 'give no answer ("" or -1) if the most probable one has a lower probability'
_PRETRAINING_CONFIG = (
    "a configuration with task: pretraining, or the name of an experiment, such as pretraining/base"
)
_SETTINGS = option(
    "--set KEY=VALUE...",
    "keys that override those of the file, such as train.seed=1",
    dest="settings",
    action="extend",
    default=[],
)
_OUT = option("--out RUN", "run folder to write or to resume", required=True)
_OF_RUN = (
    _OUT,
    _SETTINGS,
    option(
        "--workers HOST:PORT...",
        "addresses of all processes, for train.strategy multi_worker, in the same order in "
        "every process (default: those of the environment variable TF_CONFIG)",
    ),
    option("--worker N", "position of this process in --workers; the first is 0"),
)
_OF_VECTORS = (
    option("--truncate-dim N", "numbers of a vector that are kept (default: as the model has it)"),
    option(
        "--vectors",
        "what the numbers of vectors become: float32, int8 or binary, one bit each (default: as "
        "the model has it)",
        choices=VECTORS,
    ),
)
_OF_LITE = (
    option(
        "--lengths N...",
        "lengths of rows in tokens; a text uses the shortest one that it fits into "
        "(default: the maximum length of the model)",
    ),
    option(
        "--calibration FILE",
        "with --precision int8: texts, in a form of predict --input, from which fixed value "
        "ranges are computed; some accelerators require these, and a SavedModel takes them from "
        "the training data of a run by default",
    ),
)

_COMMANDS: dict[Callable[[argparse.Namespace], None], Sequence[Option]] = {
    commands.demo: [
        option("--out DIR", "folder for the results (default: %(default)s)", default="runs/demo")
    ],
    commands.vocab: [
        option("--input PATH...", "UTF-8 text files, folders or globs", required=True),
        option(
            "--format",
            "format of the files, one of those of data.format in pre-training (default: all of "
            "a file is text)",
            choices=CORPUS_FORMATS,
        ),
        option("--size N", "number of entries in the vocabulary", required=True),
        option(
            "--out PATH",
            "vocabulary file to write; with --extend the folder of the new checkpoint",
            required=True,
        ),
        option(
            "--extend CHECKPOINT",
            "checkpoint whose vocabulary grows to --size entries; old ones keep their ids, and a "
            "new one starts as the mean of the old ones that it was cut into",
        ),
        option(
            "--cased", "keep capitals and accents (default: lower-case the text and strip accents)"
        ),
    ],
    commands.pretrain_data: [
        option("config CONFIG.yaml", _PRETRAINING_CONFIG),
        option("--out DIR", "folder for the token files", required=True),
        _SETTINGS,
        option(
            "--tfrecords",
            "write TFRecords of finished examples instead of token files (each document "
            "data.dupe_factor times)",
        ),
        option(
            "--naming",
            "naming scheme of the features in TFRecords (default: %(default)s)",
            choices=("google", "model_garden"),
            default="google",
        ),
        option(
            "--beam FLAG",
            "run as an Apache Beam pipeline, which writes the same files; all arguments after "
            "it are Beam's flags (default: run on this machine)",
            nargs=argparse.REMAINDER,
        ),
    ],
    commands.pretrain: [option("config CONFIG.yaml", _PRETRAINING_CONFIG), *_OF_RUN],
    commands.adapt: [
        option("checkpoint CHECKPOINT", "checkpoint to start from: a path, or a name on the Hub"),
        option("--text PATH...", "UTF-8 text files, folders or globs", required=True),
        _OUT,
        option(
            "--format",
            "format of the files, as data.format (default: jsonl for .jsonl files, else "
            "sentence_per_line, where a blank line ends a document)",
            choices=CORPUS_FORMATS,
        ),
        option("--masking X", "share of the tokens to predict, 0.15 to 0.4", default=0.15),
        option("--steps N", "steps to train, instead of --epochs"),
        option("--epochs X", "passes over the text (default: 1)"),
        option("--batch-size N", "sequences in one step (default: 32)"),
        option("--learning-rate X", "highest learning rate (default: 5e-5)"),
        _SETTINGS,
    ],
    commands.finetune: [
        option(
            "config CONFIG.yaml",
            "a configuration with any task except pretraining, or the name of an experiment, such "
            "as glue/cola",
        ),
        *_OF_RUN,
    ],
    commands.check: [
        option("config DATA", "a configuration, or a training file with --task and --checkpoint"),
        option("--task NAME", "task of the training file, such as classification"),
        option("--checkpoint PATH", "checkpoint whose tokenizer reads the texts"),
        option("--out FILE.html", "page with pictures to write as well"),
        _SETTINGS,
    ],
    commands.evaluate: [
        option("run RUN", "a run folder"),
        option("--data PATH", "data in the format of the run (default: the dev data of the run)"),
        option(
            "--confidence P",
            "also print the confidence interval of each metric at this level, such as 0.95, from "
            "1,000 bootstrap samples of the rows",
        ),
    ],
    commands.predict: [
        option(
            "model MODEL",
            "a SavedModel, a LiteRT file, a run folder, a .keras file, a checkpoint with its "
            "head, or a name on the Hugging Face Hub",
        ),
        option("texts TEXT", "texts to predict", nargs="*"),
        option(
            "--input FILE",
            "file of texts, one per line, or of JSON lines keyed by the inputs of the model; - "
            "is standard input",
        ),
        option("--output FILE", "file to write (default: standard output)"),
        option(
            "--signature NAME",
            "signature to call, if the model has several (default: %(default)s)",
            default="serving_default",
        ),
        group(
            "answers",
            "Options of some tasks.",
            option(_ABSTAIN, f"{_LEAST} (classification, zero-shot, multiple choice)"),
            option(
                "--min-score P", "leave out entities with a lower score (with --signature entities)"
            ),
            option(
                "--aggregation",
                "which pieces of a word decide on its tag: its first, the mean of their "
                "probabilities, or the one with the highest (default: as the model)",
                choices=("first", "mean", "max"),
            ),
            option("--top-k N", "number of tokens for each [MASK] (default: as the model)"),
        ),
    ],
    commands.embed: [
        option(
            "model MODEL",
            "a SavedModel or a LiteRT file that returns vectors, a run folder, a .keras file, a "
            "checkpoint of any format, or a name on the Hugging Face Hub",
        ),
        option("file FILE", "texts, one per line, or JSON lines with the key text"),
        option(
            "--out FILE.npy",
            "matrix to write: one row per text, in the order of the file",
            required=True,
        ),
        option("--prompt NAME", "name of a prompt of the model, which is put before each text"),
        option("--batch-size N", "number of texts in a batch (default: 32)"),
        option("--max-length N", "maximum number of tokens in a text (default: that of the model)"),
        option(
            "--dtype",
            "type of the numbers in the matrix (default: %(default)s)",
            choices=("float32", "float16"),
            default="float32",
        ),
        *_OF_VECTORS,
    ],
    commands.mine: [
        option("path MODEL", "an embedder in any form that `bert-tf predict` takes"),
        option(
            "--data FILE",
            "pairs: .tsv, .csv or .jsonl with query (or anchor) and positive, or the file "
            "qrels/SPLIT.tsv of a folder in BEIR's form",
            required=True,
        ),
        option(
            "--corpus FILE",
            "passages in addition to the answers, one per line, or JSON lines with the key text",
        ),
        option("--out FILE.jsonl", "file for task: embedding and task: reranking", required=True),
        option("--negatives N", "negatives of a question (default: %(default)s)", default=3),
        option(
            "--range RANK",
            "first and last rank of a negative among the passages that are not answers "
            "(default: %(default)s)",
            dest="ranks",
            nargs=2,
            type=int,
            default=(1, 100),
        ),
        option("--margin X", "how far a negative must score below every answer"),
    ],
    commands.export: [
        option(
            "path SRC",
            "a run folder, a .keras file, a checkpoint of any format, or a name on the Hugging "
            "Face Hub",
        ),
        option("--out DIR", "folder, or .tflite or .onnx file, to write", required=True),
        option(
            "--format",
            "tf_saved_model: a SavedModel for servers; litert: a LiteRT file for phones; onnx: an "
            "ONNX file that takes ids (default: %(default)s)",
            choices=FORMATS,
            default=SAVED_MODEL,
        ),
        option(
            "--kind",
            "what the export does: task: the task that the model was fine-tuned for; hub: an "
            "encoder and its preprocessor in the form of TF Hub; mlm: fill gaps; nsp: predict "
            "whether a text follows another one; embedding: return vectors (default: "
            "%(default)s)",
            choices=KINDS,
            default="task",
        ),
        option(
            "--pooling NAME...",
            "how the vector of a text is computed: the last layer at [CLS] (cls) or [SEP] "
            "(last_token), its mean or maximum over the text (mean, mean_sqrt_len, "
            "weighted_mean, max), the output of the pooler (pooled), or the concatenation of "
            "several of them (default: that of the checkpoint, or mean)",
            choices=POOLINGS,
        ),
        *_OF_VECTORS,
        option(
            "--precision",
            "number format (default: %(default)s); bfloat16 is for SavedModels, float16 for LiteRT "
            "files; int8 stores most weights in a quarter of the space",
            choices=PRECISIONS,
            default="float32",
        ),
        option(_ABSTAIN, f"{_LEAST}, in every answer of the export"),
        option("--freeze", "store the weights as constants, in --precision"),
        option(
            "--device",
            "cpu: compute on the CPU, in the form that is fastest there; any: the server "
            "chooses the device, for example a GPU (default: %(default)s)",
            choices=("cpu", "any"),
            default="cpu",
        ),
        option(
            "--version N",
            "write to DIR/N, as TensorFlow Serving requires (with --kind hub: "
            "DIR/preprocessor/N and DIR/encoder/N)",
        ),
        option(
            "--inputs",
            "ids: token ids, mask and segments, for programs with a tokenizer of their own; "
            "strings: texts (default: strings for a SavedModel, ids for a file)",
            choices=("ids", "strings"),
        ),
        group("LiteRT files", "Options for --format litert.", *_OF_LITE),
        group(
            "bare checkpoints",
            "Settings that checkpoints of other programs do not hold.",
            option("--pair", "the inputs are pairs of texts"),
            option("--unanswerable", "a context need not contain an answer"),
            option("--max-length N", "maximum number of tokens in an input"),
            option("--labels NAME...", "names of the classes, in the order of the model's outputs"),
        ),
    ],
    commands.serve: [
        option(
            "models MODEL...",
            "a SavedModel, a folder of its versions, a run folder, a checkpoint of any format or a "
            "name on the Hugging Face Hub; NAME=MODEL gives it a name (default: that of its "
            "folder). A file NAME.config is a ModelServerConfig of TensorFlow Serving",
        ),
        option(
            "--host ADDRESS",
            "address to listen at; 0.0.0.0 serves the whole network (default: %(default)s)",
            default="127.0.0.1",
        ),
        option("--port N", "port; 0 takes a free one (default: %(default)s)", default=8501),
        option(
            "--allow NAME...",
            "host names that clients may use for this server, in addition to localhost, the name "
            "of this machine and IP addresses",
            default=[],
        ),
        option(
            "--most-bytes N", "maximum bytes in a request (default: %(default)s)", default=2**23
        ),
        option(
            "--most-rows N", "maximum rows in a single request (default: %(default)s)", default=1024
        ),
        option(
            "--most-waiting N",
            "rows that may wait for a model; further requests are refused with status 429 "
            "(default: %(default)s)",
            default=4096,
        ),
    ],
    commands.shrink: [
        option("path RUN", "folder of a finished fine-tuning run"),
        option("--out RUN", "folder for the run of the small model", required=True),
        option("--layers N", "number of layers of the small model", required=True),
        option(
            "--precision",
            "number format of the LiteRT file (default: %(default)s); see bert-tf export --help",
            choices=LITE_PRECISIONS,
            default="int8",
        ),
        *_OF_LITE,
        _SETTINGS,
    ],
    commands.convert: [
        option(
            "source SRC",
            "a checkpoint of any format, a run folder, or a name on the Hugging Face Hub",
        ),
        option("destination DST", "folder to write", nargs="?"),
        option(
            "--to",
            "format to write: bert_tf, huggingface (transformers), sentence_transformers (for "
            "embedders), tf1 (google-research/bert), model_garden (tf-models-official) or "
            "keras_hub (a preset of KerasHub)",
            choices="bert_tf huggingface sentence_transformers tf1 model_garden keras_hub".split(),
        ),
        option(
            "--verify",
            "open the result with Model Garden's own classes and compare the outputs (requires "
            "the extra model-garden)",
        ),
        option(
            "--check",
            "write nothing; print what SRC is, how its tokenizer reads texts, what would be lost, "
            "and the next command",
        ),
    ],
    commands.push: [
        option("source SRC", "a run folder, a .keras file, or a checkpoint of any format"),
        option("target TARGET", "hf://org/name, or hf://org/name@branch"),
        option("--dry-run", "print the files, their sizes and the model card; upload nothing"),
        option("--private", "make a new repository private"),
        option("--revision BRANCH", "branch to write, made if it is new (default: main)"),
        option(
            "--license NAME",
            "license in the model card, by its name on the Hub, such as apache-2.0 (default: that "
            "of a README.md next to the checkpoint)",
        ),
    ],
    commands.report: [
        option("runs RUN...", "folders of finished runs"),
        option("--out FILE", "page to write: NAME.html or NAME.md", required=True),
    ],
    commands.inspect: [
        option(
            "run RUN",
            "a run folder, a .keras file, or a checkpoint of any format, with or without a "
            "head; only a run folder has dev data",
        ),
        group(
            "texts",
            "Inputs of the model, with the names that `bert-tf predict` uses. Each option takes "
            "one or more.",
            option("--text TEXT...", "a text of a task on single texts"),
            option("--text-a TEXT...", "the first text of a pair"),
            option("--text-b TEXT...", "the second text of a pair"),
            option("--question TEXT...", "a question on a context"),
            option("--context TEXT...", "the context of a question or of choices"),
            option("--query TEXT...", "a query for passages"),
            option(
                "--choices TEXT...",
                "the choices for one context; repeat the option for each --context",
                action="append",
            ),
            option(
                "--passages TEXT...",
                "the passages for one query; repeat the option for each --query",
                action="append",
            ),
            option(
                "--candidates TEXT...",
                "the labels for one text; repeat the option for each --text",
                action="append",
            ),
            option(
                "--input FILE",
                "read the inputs from a file instead: texts, one per line, or JSON lines keyed by "
                "the inputs of the model",
            ),
        ),
        option("--out FILE.html", "page to write (default: RUN/inspect.html)"),
        option(
            "--rows N", "number of rows of the dev data to show (default: %(default)s)", default=300
        ),
    ],
    commands.schema: [option("--out FILE", "file to write (default: standard output)")],
}
