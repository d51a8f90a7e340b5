"""Reading YAML safely into plain dictionaries, with the line of each key, and writing it.

Plain values mean what YAML 1.2's core schema says (yaml.org/spec/1.2.2, section 10.3.2), not YAML
1.1, which PyYAML follows: `5e-5` is a number, `010` is ten, and `no`, `on` and `yes` are words.
"""

import dataclasses
import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from bert_tf.errors import UserError
from bert_tf.io.files import read_text
from bert_tf.io.remote import fetched, is_remote

EXPERIMENTS = Path(__file__).parents[1] / "experiments"  # configurations found by their names
_LONGEST = 80  # characters of a name that are compared with experiments' names

Keys = tuple[str, ...]
"""A key after the keys of its sections, the outermost first: ("train", "seed")."""


class Text(str):
    """A text of a file or of the command line, its place, and the folder its paths start from."""

    folder: Path
    place: str


@dataclasses.dataclass(frozen=True)
class Tree:
    """Nested dictionaries, and where each key was set: `file:line` or `--set …`; () is the file."""

    values: dict
    places: dict[Keys, str]

    def place(self, keys: Keys) -> str:
        """The place of `keys`, or of something in it, or else of the nearest section around it."""
        if keys in self.places:
            return self.places[keys]
        if inside := [place for each, place in self.places.items() if each[: len(keys)] == keys]:
            return inside[-1]
        return self.place(keys[:-1])

    def over(self, other: "Tree") -> "Tree":
        """This tree laid over `other`: sections merge, anything else replaces what was there."""
        return Tree(_merged(other.values, self.values), {**other.places, **self.places})


def read(path: str | os.PathLike, inheriting: tuple[Path, ...] = ()) -> Tree:
    """The file's keys over those of the file that its `base` names, if any."""
    path = Path(path)
    if path.resolve() in inheriting:
        raise UserError(f"{path}: the file inherits from itself; change its key base")
    values, node = _parse(read_text(path, "configuration file"), str(path), path.parent)
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected keys with values, such as `task: classification`")
    places: dict[Keys, str] = {(): str(path)}
    places |= {keys: f"{path}:{line}" for keys, line in _lines(node)}
    if "base" not in values:
        return Tree(values, places)
    base = values.pop("base")
    place = places.pop(("base",))
    if not isinstance(base, str):
        raise UserError(f"{place}: base must be the path of another configuration file, as text")
    file = find(base, path.parent, f"{place}: configuration file")
    return Tree(values, places).over(read(file, (*inheriting, path.resolve())))


def find(name: str | os.PathLike, folder: Path = Path(), what: str = "configuration file") -> Path:
    """The file at the path `name`, from `folder`; if there is none, the experiment of that name."""
    path = fetched(name if is_remote(name) else folder / name, is_file=True)
    name = os.fspath(name)
    if os.path.lexists(path) and not os.path.isdir(path):
        return path
    files = {
        file.relative_to(EXPERIMENTS).as_posix().removesuffix(".yaml"): file
        for file in sorted(EXPERIMENTS.rglob("*.yaml"))
    }
    if name in files or os.path.isdir(path):
        return files.get(name, path)  # reading a folder raises a fitting error
    wanted = name.removeprefix("experiments/").removesuffix(".yaml")[:_LONGEST]
    near = [each for each in files if f"/{each}".endswith(f"/{wanted}")]
    near = near or difflib.get_close_matches(wanted, files, cutoff=0.61)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "give a path, or a name such as glue/cola"
    )
    raise UserError(f"{what} not found: {name} is neither a file nor an experiment's name; {hint}")


def read_setting(setting: str) -> Tree:
    """A `section.key=value` of the command line, in YAML; paths start from the working folder."""
    name, equals, text = setting.partition("=")
    keys = tuple(name.split("."))
    if not equals or not all(keys):
        raise UserError(f"--set {setting}: expected KEY=VALUE, as in --set train.seed=1")
    place = f"--set {setting}"
    value, node = _parse(text, place, Path.cwd(), with_line=False)
    places = dict.fromkeys([each for each, _ in _lines(node, keys)] or [keys], place)
    for key in reversed(keys[1:]):
        value = {key: value}
    return Tree({keys[0]: value}, places)


def write(values: dict) -> str:
    """`values` as YAML that `read` reads back to the same."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the plain values of YAML 1.2; no aliases, tags or repeated keys."""

    yaml_implicit_resolvers: dict = {}
    folder: Path
    where: str
    with_line: bool

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise _error(event, f"alias *{event.anchor} is not supported; write the value again")
        if getattr(event, "tag", None) is not None:
            raise _error(event, f"tag {event.tag} is not supported; write the value without it")
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise _error(key, "a key must be a word; put other keys in quotes")
            if key.value in lines:
                first = lines[key.value]
                raise _error(key, f"key {key.value!r} appears twice, first in line {first}")
            lines[key.value] = _line(key)
        return node


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, quoting the texts that `_Loader` would take for something else."""

    yaml_implicit_resolvers: dict = {}

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # In other quotes PyYAML writes U+0085 and U+2028 as line ends, which it reads as spaces.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)

_CORE_SCHEMA = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
}
for _class in (_Loader, _Dumper):
    for _kind, (_form, _first) in _CORE_SCHEMA.items():
        _tag = f"tag:yaml.org,2002:{_kind}"
        _class.add_implicit_resolver(_tag, re.compile(rf"(?:{_form})\Z"), _first)


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _construct_text(loader: _Loader, node: yaml.ScalarNode) -> Text:
    text = Text(loader.construct_scalar(node))
    text.folder = loader.folder
    text.place = f"{loader.where}:{_line(node)}" if loader.with_line else loader.where
    if "\0" in text:
        raise _error(node, "a text cannot hold the character NUL")
    return text


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:str", _construct_text)


def _parse(
    text: str, where: str, folder: Path, with_line: bool = True
) -> tuple[object, yaml.Node | None]:
    """The value that `text` holds, None if nothing, and PyYAML's node for it, which knows lines."""
    line = None
    try:
        loader = _Loader(text)
        loader.folder, loader.where, loader.with_line = folder, where, with_line
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except yaml.MarkedYAMLError as error:
        problem = " ".join(str(error.problem or error.context).split())
        line = (error.problem_mark or error.context_mark).line + 1
    except yaml.reader.ReaderError as error:
        problem = error.reason
        line = text.count("\n", 0, error.position) + 1
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:  # a number of more digits than Python converts
        problem = str(error)
    if line and with_line:
        where = f"{where}:{line}"
    raise UserError(f"{where}: not valid YAML: {problem}")


def _error(at: yaml.Event | yaml.Node, problem: str) -> yaml.YAMLError:
    return yaml.composer.ComposerError(None, None, problem, at.start_mark)


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _lines(node: yaml.Node | None, keys: Keys = ()) -> Iterator[tuple[Keys, int]]:
    """Every key of a mapping, and of the mappings in it, with its line."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*keys, key.value), _line(key)
            yield from _lines(value, (*keys, key.value))


def _merged(old: dict, new: dict) -> dict:
    merged = dict(old)
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merged(before, value)
        merged[key] = value
    return merged
