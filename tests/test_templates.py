"""The templates of pages: what they show is text, whatever it holds."""

import re
from pathlib import Path

import jinja2
import pytest

from bert_tf.templates import TEMPLATES

ROOT = Path(__file__).parents[1]
FILES = [*ROOT.glob("bert_tf/**/*.html"), *ROOT.glob("tests/outside/**/*.html")]


def test_texts_are_escaped():
    template = TEMPLATES.from_string('<p title="{{ text }}">{{ text }}</p>')
    assert template.render(text="\"'<&>") == (
        '<p title="&#34;&#39;&lt;&amp;&gt;">&#34;&#39;&lt;&amp;&gt;</p>'
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_template_leaves_escaping_out(path):
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", path.read_text())


def test_nothing_in_python_is_declared_to_be_markup():
    for path in ROOT.glob("bert_tf/**/*.py"):
        assert not re.search(r"Markup\([^)]", path.read_text()), path


INCLUDED = [path for end in ("js", "css") for path in ROOT.glob(f"bert_tf/**/*.{end}")]


@pytest.mark.parametrize("path", INCLUDED, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_pages_include_has_no_signs_of_templates(path):
    assert TEMPLATES.get_template(path.relative_to(ROOT).as_posix()).render() == path.read_text()


def test_a_missing_value_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        TEMPLATES.from_string("{{ nothing }}").render()


def test_numbers_have_a_true_minus_sign():
    template = TEMPLATES.from_string(
        "{{ -0.5 | figures }} {{ 0.5 | signed }} {{ 0.123 | percent }}"
    )
    assert template.render() == "−0.500 +0.500 12.3%"
