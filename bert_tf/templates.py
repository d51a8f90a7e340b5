"""The templates of pages. They escape every text of data, models and runs that they show.

A template is a file in a package. Its name is the package and the path of the file in it. Other
packages have templates too: `star_ratings/stars.html`.
"""

from collections.abc import Callable
from typing import Any

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined


def figures(value: float) -> str:
    """A number with three decimals, and the minus sign of Unicode."""
    return f"{value:.3f}".replace("-", "−")


def signed(value: float) -> str:
    """A number like `figures`, always with its sign."""
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
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {each.__name__: each for each in (figures, signed, percent)}


def macros(template: str) -> Any:
    """The macros of a template. Python calls them like functions, and each returns markup."""
    return TEMPLATES.get_template(template).module
