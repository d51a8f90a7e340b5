"""The site that `make docs` builds of these pages, with Sphinx."""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS.parent)]

import bert_tf  # noqa: E402

project = "bert_tf"
author = "the authors of bert_tf"
release = bert_tf.__version__
exclude_patterns = ["_*"]
nitpicky = True
# Classes behind public ones, which annotations name and the reference does not describe.
nitpick_ignore = [
    ("py:class", "bert_tf.asking.frozen.FrozenTask"),
    ("py:class", "bert_tf.asking.record.Record"),
    ("py:class", "bert_tf.checkpoints.correspondence.Table"),
    ("py:class", "bert_tf.checkpoints.description.Description"),
    ("py:class", "bert_tf.checkpoints.tensors.Tensors"),
    ("py:class", "bert_tf.config.run.FinetuningRun"),
    ("py:class", "bert_tf.config.run.RunConfig"),
    ("py:class", "bert_tf.config.train.LoraConfig"),
    ("py:class", "bert_tf.runs.run_folder.RunFolder"),
]
# Quotes stay as they are typed.
smartquotes_action = "D"

extensions = [
    "myst_nb",
    "pages",
    "python_names",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]

# Links to headings, with the anchors that GitHub gives them.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
# Notebooks are shown with the outputs that are stored in them.
nb_execution_mode = "off"

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
default_role = "name"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "bert_tf"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
