"""The templates of HTML pages. They escape all text of data, models and runs.

The name of a template is a package and the path of a file in it: `star_ratings/stars.html` may be
in another package than bert_tf.
"""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined

from bert_tf.console import escaped

# Colours that people of any colour vision can distinguish (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c7a00", "#000000")


def figures(value: float) -> str:
    """A number with three decimals and a true minus sign."""
    return f"{value:.3f}".replace("-", "−")


def signed(value: float) -> str:
    """A number with three decimals, always with its sign."""
    return figures(value) if value < 0 else f"+{figures(value)}"


def percent(share: float, places: int = 1) -> str:
    """A share in percent."""
    return f"{share:.{places}%}"


class _Packages(BaseLoader):
    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool] | None]:
        package, _, path = template.partition("/")
        return PackageLoader(package, "").get_source(environment, path)


TEMPLATES = Environment(
    loader=_Packages(),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=lambda value: escaped(value, "\t\n") if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {each.__name__: each for each in (figures, signed, percent)}


def macros(template: str) -> Any:
    """The macros of a template, which Python calls like functions; each returns markup."""
    return TEMPLATES.get_template(template).module


def content_hash(*templates: str) -> str:
    """How a Content-Security-Policy names a script or a style that consists of these templates."""
    text = "".join(TEMPLATES.get_template(name).render() for name in templates)
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
