"""Names that distinguish folders from each other."""

import os
from collections.abc import Sequence
from pathlib import Path


def distinct_names(folders: Sequence[str | os.PathLike]) -> list[str]:
    """The name of each folder, with as many parent folders as distinguish it from the others.

    >>> distinct_names(["first/bert", "second/bert", "second/tuned"])
    ['first/bert', 'second/bert', 'tuned']
    """
    paths = [Path(folder).resolve().parts for folder in folders]
    names = []
    for own in paths:
        others = {each for each in paths if each != own}
        depth = 1
        while depth < len(own) and any(each[-depth:] == own[-depth:] for each in others):
            depth += 1
        names.append(Path(*own[-depth:]).as_posix())
    return names
