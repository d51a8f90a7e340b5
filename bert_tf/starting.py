"""TensorFlow and Keras start in two thirds of the time once `bert_tf` has been imported.

They import scikit-learn, matplotlib and more for functions that few programs ever call. Here these
modules are executed when one of their attributes is first read. Nothing else changes for a program
that uses them. Python also collects garbage several times during the import and finds none; here it
collects only after the import. Where all of these packages are installed, the first use of a
name such as `bert_tf.load` takes 3.3 seconds of CPU instead of 5.1.
"""

import contextlib
import gc
import importlib.machinery
import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

_STARTED = ("tensorflow", "keras")
# The modules that are executed later -> who imports them, and what for or with what.
_DELAYED = {
    "googleapiclient.discovery": "TensorFlow, to find the machines of a cluster on Google's cloud",
    "keras._tf_keras.keras.wrappers": "`tf.keras`, with scikit-learn",
    "keras.wrappers": "Keras, with scikit-learn",
    "matplotlib.pyplot": "Keras, to show images",
}


class _Delayed(ModuleType):
    """A module that is executed when code first reads an attribute that the empty module lacks."""

    def __getattr__(self, name: str) -> Any:
        # Code that looks through sys.modules for `__file__` or `__warningregistry__` executes
        # nothing. Python reads `__path__` before it imports a submodule.
        wanted = not name.startswith("__") or name in ("__path__", "__all__")
        loader: Any = getattr(self.__spec__, "loader", None)
        if wanted and isinstance(loader, _Later) and loader.execute(self):
            return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class _Later:
    """Loads an empty module, and executes it later, by its original `spec`."""

    def __init__(self, spec: importlib.machinery.ModuleSpec) -> None:
        self.spec = spec
        self.lock = threading.RLock()
        # False until `import` is done with the empty module, and while the module is executed.
        self.ready = False

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Delayed(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.pop("__path__", None)
        self.ready = True

    def execute(self, module: ModuleType) -> bool:
        """Executes the module once, while other threads wait; False if it is being executed."""
        with self.lock:
            if not isinstance(module, _Delayed):
                return True
            if not self.ready:
                return False
            self.ready = False
            loader, path = self.spec.loader, self.spec.submodule_search_locations
            assert loader is not None
            if path is not None:
                module.__path__ = path
            try:
                loader.exec_module(module)
            finally:
                self.ready = True
            module.__spec__, module.__loader__ = self.spec, loader
            module.__class__ = ModuleType  # type: ignore[assignment]
            return True


class _WithoutCollecting:
    """Executes a module while Python collects no garbage."""

    def __init__(self, spec: importlib.machinery.ModuleSpec) -> None:
        self.spec = spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        assert self.spec.loader is not None
        return self.spec.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None and self.spec.loader is not None
        module.__spec__.loader = module.__loader__ = self.spec.loader
        with not_collecting():
            self.spec.loader.exec_module(module)


@contextlib.contextmanager
def not_collecting() -> Iterator[None]:
    """Keeps Python from collecting garbage, for imports."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Imported objects stay, so they join the generation that is collected least often. Objects
        # that the program itself has frozen remain frozen.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collected:
            gc.enable()


class _Finder:
    """Finds TensorFlow and Keras and, while one of them is imported, the modules of `_DELAYED`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _STARTED and not (name in _DELAYED and any(map(_is_starting, _STARTED))):
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is None or found.loader is None:
            return None
        loader = (_WithoutCollecting if name in _STARTED else _Later)(found)
        spec = importlib.machinery.ModuleSpec(name, loader, origin=found.origin)  # type: ignore[arg-type]
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location, spec.cached = found.has_location, found.cached
        return spec


def _is_starting(name: str) -> bool:
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)


def start_faster() -> None:
    """Changes how TensorFlow and Keras are imported; does nothing if one of them has been."""
    if not any(name in sys.modules for name in _STARTED):
        sys.meta_path.insert(0, _Finder())
