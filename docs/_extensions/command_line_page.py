"""The reference of the command line, made of its parser."""

import argparse
import functools
import re
import textwrap
from collections.abc import Iterable

from markdown_text import as_markdown

from bert_tf.cli.parser import PROGRAM, make_parser

_SHARED = {"--help", "--quiet"}
_WIDTH = 80


def markdown() -> str:
    """A table of the commands, the options of all, and a section for each command."""
    parser = make_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    rows = [
        f"| [`{each.dest}`](#{PROGRAM}-{each.dest}) | {as_markdown(each.help or '')} |"
        for each in commands._choices_actions
    ]
    shared = [each for each in parser._actions if _SHARED & {*each.option_strings}]
    lines = ["| command | what it does |", "|---|---|", *rows, ""]
    lines += ["Options of every command:", "", *_options(shared)]
    lines += ["Exit codes:", "", *_block("text", _ending(parser)[1])]
    for name, each in commands.choices.items():
        lines += _section(f"{PROGRAM} {name}", each)
    return "\n".join(lines)


def _section(title: str, parser: argparse.ArgumentParser) -> list[str]:
    """What one command does, its usage, its own options by group, and its examples."""
    parser.formatter_class = functools.partial(parser.formatter_class, width=_WIDTH)
    usage = re.sub(f"^(usage: |{' ' * len('usage: ')})", "", parser.format_usage(), flags=re.M)
    lines = [f"## {title}", "", as_markdown(parser.description or ""), ""]
    lines += _block("text", usage)
    for number, group in enumerate(parser._action_groups):
        own = [each for each in group._group_actions if not _SHARED & {*each.option_strings}]
        # The first two groups are argparse's own.
        if own and number > 1:
            lines += [
                f"**{as_markdown(group.title or '')}**: {as_markdown(group.description or '')}",
                "",
            ]
        lines += _options(own)
    return [*lines, "Examples:", "", *_block("sh", _ending(parser)[0])]


def _options(actions: Iterable[argparse.Action]) -> list[str]:
    """A definition list of options and arguments."""
    lines = []
    for action in actions:
        shown = action.metavar or (action.choices and "|".join(map(str, action.choices))) or ""
        if action.nargs in ("+", "*", argparse.REMAINDER):
            shown = f"{shown} …"
        names = [f"{name} {shown}".strip() for name in action.option_strings or [""]]
        about = (action.help or "").replace("%(default)s", f"`{action.default}`")
        if action.option_strings and action.required:
            about = f"{about}; required"
        elif action.metavar and action.choices:
            about = f"{about}; one of {', '.join(f'`{each}`' for each in action.choices)}"
        lines += [", ".join(f"`{name}`" for name in names), f": {as_markdown(about)}", ""]
    return lines


def _ending(parser: argparse.ArgumentParser) -> tuple[str, str]:
    """The examples at the end of a help, and the exit codes after them."""
    examples, _, codes = (parser.epilog or "").partition("\n\nexit codes:\n")
    return textwrap.dedent(examples.removeprefix("examples:\n")), textwrap.dedent(codes)


def _block(language: str, text: str) -> list[str]:
    """A fence with some text."""
    return [f"```{language}", *text.strip("\n").splitlines(), "```", ""]
