"""The page: one HTML file that needs nothing else, and lets nothing else in."""

from collections.abc import Sequence

import numpy as np

from bert_tf.inspecting import charts
from bert_tf.inspecting.importance import Importances
from bert_tf.inspecting.looks import Look, Section, SeenInput
from bert_tf.inspecting.markup import Html, figures, joined, tag
from bert_tf.inspecting.viewer import SCRIPT, SCRIPT_HASH, attention_figure

_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h2 { border-top: 1px solid #ccc; padding-top: 1.5rem; margin-top: 2.5rem; }
h2, td, th { overflow-wrap: anywhere; }
small { font-size: 11px; }
svg { max-width: 100%; height: auto; }
svg text { font-size: 12px; fill: #444; }
svg text.mark { fill: #000; font-weight: bold; paint-order: stroke; stroke: #fff;
  stroke-width: 4px; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: right; }
th:first-child { text-align: left; max-width: 30rem; font-weight: normal; }
.bar { background: #0072b2; height: .9rem; }
.confusions td { min-width: 2.5rem; }
.note { color: #555; max-width: 60rem; font-size: 14px; }
.caption { margin: 1rem 0 .2rem; font-size: 14px; }
.tokens { margin: 0; }
.legend span { margin-right: 1rem; }
.legend .swatch { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
.tokens, .words, .context { max-width: 66rem; }
.tokens > span { display: inline-block; text-align: center; margin: 1px; padding: 0 .3rem;
  border-radius: 3px; }
.tokens small, .word small { display: block; color: #333; }
.words, .context { line-height: 1.4; }
.word, .barred { display: inline-block; vertical-align: top; }
.word { border-bottom: 3px solid; margin: 0 1px; }
.answer { background: #fff3c4; font-weight: bold; }
.spans { display: flex; justify-content: center; gap: 2px; }
.spans span { display: flex; flex-direction: column; align-items: center; font-weight: normal; }
.spans i { width: 7px; display: block; }
.start i { background: #0072b2; } .end i { background: #d55e00; }
figure { margin: 1rem 0; }
.choices { display: flex; gap: 1.5rem; align-items: baseline; margin-bottom: .5rem; }
.maps { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; }
.large, .overview { overflow-x: auto; max-width: 100%; }
.large canvas:focus { outline: 2px solid #56b4e9; }
.overview { display: grid; gap: 1px; font-size: 11px; color: #666; text-align: center;
  align-items: center; }
.overview button { padding: 0; border: 2px solid #fff; background: none; line-height: 0;
  cursor: pointer; outline: 1px solid #ddd; outline-offset: -2px; }
.overview button.on { border-color: #d55e00; }
"""
_HOW_TO_READ_IMPORTANCES = (
    "The colour of a token shows what it adds to an output, blue for it and orange against it: "
    "integrated gradients (Sundararajan, Taly and Yan 2017) on the straight way from the same "
    "input with [MASK] in place of every token. Together they make the difference between the "
    "outputs of the two."
)
_HOW_TO_READ_ATTENTION = (
    "Squares show how much a token (rows) takes from each token (columns) in one attention head, "
    "the darker the more; a shade is the root of the share. Choose a head with a click, with the "
    "menus, or with the arrow keys."
)


def page(title: str, intro: Sequence[str], looks: Sequence[Look], dev: Sequence[Html]) -> str:
    """The whole page.

    Args:
        title: its heading.
        intro: paragraphs below it.
        looks: the texts that were looked at.
        dev: what there is about the dev data.
    """
    head = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", title),
        Html(f"<style>{_STYLE}</style>"),
    ]
    body = [
        tag("h1", title),
        *(tag("p", text) for text in intro),
        *(tag("p", text, class_="note") for text in _how_to_read(looks)),
        *(_look(look) for look in looks),
        *dev,
        tag("noscript", tag("p", "The maps of attention are drawn by JavaScript.")),
        Html(f"<script>{SCRIPT}</script>"),
    ]
    return (
        "<!DOCTYPE html>\n" + tag("html", tag("head", *head), tag("body", *body), lang="en") + "\n"
    )


def section(part: Section) -> Html:
    """A part about the dev data."""
    return tag("section", tag("h3", part.title), part.picture, tag("p", part.note, class_="note"))


def _how_to_read(looks: Sequence[Look]) -> list[str]:
    """What is to be known of the pictures that there are."""
    inputs = [each for look in looks for each in look.inputs]
    explained = [_HOW_TO_READ_IMPORTANCES] if any(each.explained for each in inputs) else []
    return explained + ([_HOW_TO_READ_ATTENTION] if inputs else [])


def _look(look: Look) -> Html:
    return tag(
        "section",
        tag("h2", *(f"“{text}” " for text in look.heading)),
        look.answer,
        *(_seen(each) for each in look.inputs),
    )


def _seen(seen: SeenInput) -> Html:
    shown, there = len(seen.attention.places), len(seen.tokens)
    cut = f"Attention of {shown} of {there} tokens, so that rows need not add up to 1."
    return joined(
        [
            *([tag("h3", seen.title)] if seen.title else []),
            *(_explained(seen.tokens, each) for each in seen.explained),
            *([tag("p", cut, class_="note")] if shown < there else []),
            attention_figure(seen.tokens, seen.attention),
        ]
    )


def _explained(tokens: Sequence[str], found: Importances) -> Html:
    """The tokens, blue where they speak for an output and orange where they speak against it."""
    largest = max(float(np.abs(found.values).max()), np.finfo(float).tiny)

    def token(text: str, value: float) -> Html:
        strength = 0.75 * abs(value) / largest
        style = charts.shade(charts.BLUE if value > 0 else charts.ORANGE, strength)
        return tag("span", text, tag("small", _signed(value)), style=style)

    total = float(found.values.sum())
    caption = (
        f"What each token adds to {found.of}: together {_signed(total)}; the outputs differ "
        f"by {_signed(found.change)}."
    )
    marked = (token(*each) for each in zip(tokens, found.values.tolist(), strict=True))
    return joined([tag("p", caption, class_="caption"), tag("p", *marked, class_="tokens")])


def _signed(value: float) -> str:
    text = figures(value)
    return text if value < 0 else f"+{text}"
