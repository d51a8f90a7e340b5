"""What the site adds to the Markdown of a page, which itself reads well on GitHub.

A fence with a title becomes one with a caption, an index page gets the menu of its folder, and the
pages that the code decides get their tables.
"""

import re
from pathlib import Path

import command_line_page
import configuration_page

DOCS = Path(__file__).resolve().parents[1]
# Folder -> its pages that come first in the menu. All others follow in alphabetical order.
MENU = {
    "": [
        "installing",
        "tutorials/index",
        "how_to/index",
        "migrating/index",
        "reference/index",
        "explanation/index",
        "results/index",
        "project/index",
    ],
    "tutorials": [
        "classify",
        "label",
        "score",
        "ask",
        "tag",
        "embed_and_search",
        "choose",
        "pretrain",
        "serve",
        "phone",
    ],
    "how_to": [
        "task_objects",
        "runs",
        "classification",
        "zero_shot",
        "regression",
        "question_answering",
        "token_classification",
        "entity_spans",
        "multiple_choice",
        "embedding",
        "reranking",
        "retrieval",
        "hard_negatives",
        "long_texts",
        "data_sets",
        "data_quality",
        "vocabulary",
        "domain_text",
        "pretraining",
        "paper_tasks",
        "training_at_scale",
        "tpu_vm",
        "trackers",
        "buckets",
        "distillation",
        "adapters",
        "checkpoints",
        "exporting",
        "publishing",
        "serving",
        "containers",
        "phone",
        "uncertainty",
        "inspect",
        "first_errors",
        "adding_a_task",
    ],
    "migrating": ["from_transformers", "from_keras_hub", "statements", "libraries"],
    "reference": ["python", "configuration", "command_line", "checkpoint_keys"],
    "reference/python": [
        "tasks",
        "text",
        "encoder",
        "training",
        "export",
        "checkpoints",
        "retrieval",
        "files",
        "runs",
        "extending",
    ],
    "explanation": ["architecture", "exactness", "speed"],
    "results": ["speed", "quality", "exactness", "robustness"],
    "project": ["contributing", "roadmap", "versions", "changelog"],
}
SUFFIXES = (".md", ".ipynb")
_TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)
# Page -> the Markdown that ends it.
_GENERATED = {
    "reference/command_line": command_line_page.markdown,
    "reference/configuration": configuration_page.markdown,
}


def menu(folder: str) -> list[str]:
    """The pages of a folder in the order of the menu, as paths from `docs/` without endings."""
    first = [f"{folder}/{name}".lstrip("/") for name in MENU[folder]]
    files = [each for each in (DOCS / folder).iterdir() if each.suffix in SUFFIXES]
    found = {each.relative_to(DOCS).with_suffix("").as_posix() for each in files}
    return [*first, *sorted(found - {*first, f"{folder}/index".lstrip("/")})]


def folder_of(page: str) -> str | None:
    """The folder whose menu a page has: `how_to/index` that of `how_to`, `how_to/a` none."""
    folder = page.removesuffix("index").removesuffix("/")
    return folder if folder in MENU else None


def markdown(page: str, text: str) -> str:
    """A page as Sphinx reads it, from its path without ending and its text.

    >>> print(markdown("installing", '```yaml title="run.yaml"\\ntask: regression\\n```'))
    ```{code-block} yaml
    :caption: run.yaml
    task: regression
    ```
    """
    text = _TITLED.sub(r"```{code-block} \1\n:caption: \2", text)
    if page in _GENERATED:
        text += f"\n{_GENERATED[page]()}"
    folder = folder_of(page)
    if folder is not None and menu(folder):
        # An index that links to its pages itself needs no second list of them.
        options = [":hidden:"] if "](" in text else [":titlesonly:"]
        lines = [f"/{each}" for each in menu(folder)]
        text += "\n".join(["", "```{toctree}", *options, "", *lines, "```", ""])
    return text


def setup(app):
    """Has Sphinx read the pages so."""

    def read(app, page, source):
        if Path(app.env.doc2path(page)).suffix == ".md":
            source[0] = markdown(page, source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
