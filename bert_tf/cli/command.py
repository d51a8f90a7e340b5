"""The part that all command lines share: how arguments are read, and how a command ends."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bert_tf.console import news
from bert_tf.dependencies import prepare_environment
from bert_tf.errors import UserError
from bert_tf.io.refusals import is_disk_full, is_out_of_memory, is_refused, refusal
from bert_tf.io.remote import is_remote

_EXIT_CODES = """\
exit codes:
  0    success
  2    an error in the input, such as a missing file, reported in one line on standard error
  130  stopped by Ctrl-C
  143  stopped by SIGTERM, after training saved its last step
  any other code is a bug"""


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises UserError; its help ends with examples and exit codes."""

    def __init__(self, epilog: str = "", **kwargs: Any):
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            epilog=f"{epilog}\n\n{_EXIT_CODES}".lstrip(),
            **kwargs,
        )
        self.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            # A default in the subcommand's parser would override an option before the subcommand.
            default=argparse.SUPPRESS,
            help="print only results, warnings and errors",
        )

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


Option = Callable[[Any], object]  # adds options to a parser or to one of its groups


def integer(text: str) -> int:
    """A whole number of at most 64 bits."""
    if abs(int(text)) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text} is too large")
    return int(text)


_NUMBERS = {"N": integer, "P": float, "X": float}  # what the letters stand for


def option(declaration: str, help: str, **settings: Any) -> Option:
    """An option as the help shows it: "--out FILE", "--cased" or, if positional, "model MODEL".

    N is a whole number, P or X any number; dots stand for one value or more. A name alone is a
    switch, unless it has `choices`.
    """
    name, _, metavar = declaration.partition(" ")
    if metavar.endswith("..."):
        metavar = metavar.removesuffix("...")
        settings["nargs"] = "+"
    if metavar:
        settings["metavar"] = metavar
    elif "choices" not in settings:
        settings["action"] = "store_true"
    if metavar in _NUMBERS:
        settings["type"] = _NUMBERS[metavar]
    return lambda parser: parser.add_argument(name, help=help, **settings)


def group(title: str, description: str, *options: Option) -> Option:
    """Options that have a title of their own in the help."""

    def add(parser: argparse.ArgumentParser) -> None:
        of_group = parser.add_argument_group(title, description)
        for each in options:
            each(of_group)

    return add


def module_parser(module: str, doc: str, *options: Option) -> Parser:
    """The parser of `python -m module`; `doc`, the module's docstring, is its description."""
    parser = Parser(prog=f"python -m {module}", description=doc.strip())
    for each in options:
        each(parser)
    return parser


def check_output(given: Mapping[str, Any]) -> None:
    """Raises UserError if the file that is written is one of those that are read."""
    out = given.get("out") or given.get("output") or ""
    if not os.path.isfile(out) and not is_remote(out):
        return
    for name in given.keys() - {"out", "output", "texts"}:
        for each in given[name] if isinstance(given[name], list) else [given[name]]:
            if isinstance(each, str | Path) and os.path.realpath(each) == os.path.realpath(out):
                raise UserError(f"{out} is an input that would be replaced; name another output")


def run(
    program: str,
    parser: Parser,
    argv: Sequence[str] | None,
    work: Callable[[argparse.Namespace], object],
    stopped: str,
) -> int:
    """Runs a command, and prints its error if it has one; returns the exit code of the process."""

    def say(message: str) -> None:
        print(f"{program}: {message}", file=sys.stderr)

    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:  # closed: the next opened file would get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    prepare_environment()
    try:
        arguments = parser.parse_args(argv)
        check_output(vars(arguments))
        quiet = vars(arguments).pop("quiet", False)
        with news(shown=not quiet):
            work(arguments)
        sys.stdout.flush()
    except UserError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say(stopped)
        return 130
    except BrokenPipeError:
        # The reader has stopped, as `head` does. Discard what Python still writes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        # TensorFlow, which writes the logs of TensorBoard, raises no UserError.
        if is_disk_full(error):
            say("error: the disk is full; free some space and run the same command again")
        elif (told := refusal(error)) is not None:
            say(f"error: {told}")
        elif is_refused(error):
            say(f"error: the system refused to open a file ({error}); correct the path or its mode")
        elif is_out_of_memory(error):
            say(
                "error: out of memory; lower train.batch_size or train.max_length, raise "
                "train.accumulation_steps, set train.rematerialize: true, or use a smaller model"
            )
        else:
            raise
        return 2
    return 0
