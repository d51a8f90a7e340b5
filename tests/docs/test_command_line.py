"""The page on the command line has every command with its options, and shows no mistake."""

import argparse
import re
import shlex
from pathlib import Path

import pages
import pytest

from bert_tf.cli.parser import PROGRAM, make_parser

DOCS = Path(__file__).parents[2] / "docs"
NAME = "reference/command_line"
PAGE = pages.markdown(NAME, (DOCS / f"{NAME}.md").read_text())
(COMMANDS,) = (
    action.choices
    for action in make_parser()._actions
    if isinstance(action, argparse._SubParsersAction)
)


def section(name):
    return PAGE.partition(f"\n## {PROGRAM} {name}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_help(name):
    parser, text = COMMANDS[name], section(name)
    assert re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip() in re.sub(
        r"\s+", " ", text
    )
    terms = re.findall(r"^(`.+`)\n: \S", text, re.MULTILINE)
    shown = {word for term in terms for word in term.strip("`").split()}
    for action in parser._actions:
        if action.dest not in ("help", "quiet"):
            assert {*action.option_strings} <= shown
            assert action.option_strings or action.metavar in shown
    assert f"| [`{name}`](#{PROGRAM}-{name}) | " in PAGE


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_accepted_by_the_parser(name):
    _, _, block = section(name).partition("Examples:\n\n```sh\n")
    lines = block.partition("\n```")[0].splitlines()
    assert lines
    for line in lines:
        commands = [each for each in line.split(" | ") if each.startswith(f"{PROGRAM} ")]
        assert commands or line.startswith("# ")
        for command in commands:
            make_parser().parse_args(shlex.split(command)[1:])


def test_what_all_commands_share_stands_once():
    assert PAGE.count("`-q`, `--quiet`\n") == 1
    assert PAGE.count("stopped by Ctrl-C") == 1
    assert "%(" not in PAGE
