"""Small models of every family, and their exports, each written once for all test files."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import (
    MaskedLM,
    MultipleChoice,
    NextSentence,
    QuestionAnswerer,
    Reranker,
    TextClassifier,
    TextEmbedder,
    TextRegressor,
    TokenClassifier,
    ZeroShotClassifier,
)
from bert_tf.asking.session import SessionModel
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.saving import save_hub
from bert_tf.export.served_model import Form
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.text import Tokenizer
from tests import tiny, tiny_tags

# Short windows, so that short texts need several.
TAGGING = {"max_length": 24, "stride": 8}
WINDOWS = TAGGING | {"max_question_length": 4}
# A name -> how its model is made of an encoder and a tokenizer.
TASKS = {
    "classification": lambda e, t: TextClassifier(e, t, ["no", "yes", "maybe"]),
    "pair": lambda e, t: TextClassifier(e, t, [0, 1], pair=True),
    "multi_label": lambda e, t: TextClassifier(e, t, ["no", "yes", "maybe"], multi_label=True),
    "regression": TextRegressor,
    "multi_target_regression": lambda e, t: TextRegressor(e, t, targets=["price", "size"]),
    "multiple_choice": MultipleChoice,
    "reranking": Reranker,
    "zero_shot": lambda e, t: ZeroShotClassifier(e, t, ["entailment", "neutral", "contradiction"]),
    "question_answering": lambda e, t: QuestionAnswerer(e, t, **WINDOWS, n_best=5),
    "token_classification": lambda e, t: TokenClassifier(e, t, tiny_tags.LABELS, **TAGGING),
    "mlm": lambda e, t: MaskedLM(e, t, top_k=3),
    "nsp": NextSentence,
    "embedding": TextEmbedder,
}
FAMILIES = {**TASKS, "hub": lambda e, t: PreTrainer(e)}


def tasks(*quick: str, without: Sequence[str] = ()) -> list:
    """The families of tasks as parameters of a test; all that are not `quick` are slow."""
    return [
        pytest.param(family, marks=() if family in quick else pytest.mark.slow)
        for family in TASKS
        if family not in without
    ]


# These families have a first and a last layer; the single layer of the others is both.
LAYERS = {"classification": 2, "hub": 2}
FORM = [field.name for field in dataclasses.fields(Form)]


def cases(*quick: tuple[str, dict], bfloat16: bool = False, hub: bool = True) -> list:
    """Each family plain, frozen, and perhaps frozen in bfloat16, as parameters; hub only plain."""
    forms: list[dict] = [{}, {"freeze": True}]
    if bfloat16:
        forms.append({"freeze": True, "precision": "bfloat16"})
    return [
        pytest.param(
            family,
            form,
            marks=[
                *([] if (family, form) in quick else [pytest.mark.slow]),
                *([pytest.mark.bfloat16] if "precision" in form else []),
            ],
        )
        for family in FAMILIES
        for form in forms
        if family in TASKS or (hub and not form)
    ]


Exported = Callable[..., Path]


def save(family: str, model: keras.Model, tokenizer: Tokenizer, out: Path, **settings) -> Path:
    """Writes the export of a family."""
    if family not in TASKS:
        form = {each: settings.pop(each) for each in FORM if each in settings}
        return save_hub(model, tokenizer, out, Form(**form), **settings)
    model.export(out, **settings)
    return out


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return tiny.tokenizer()


@pytest.fixture(scope="session")
def models(tokenizer) -> Callable[[str], keras.Model]:
    """Gives the model of a family.

    For the texts of the tests, competing answers are in equal rows or have scores that differ by
    7e-4 or more: rounding (1e-6) does not decide which one is better.
    """
    made: dict[str, keras.Model] = {}

    def model(family: str) -> keras.Model:
        if family not in made:
            keras.utils.set_random_seed(7)
            config = tiny.encoder_config(16, num_hidden_layers=LAYERS.get(family, 1))
            made[family] = FAMILIES[family](Encoder(config), tokenizer)
        return made[family]

    return model


@pytest.fixture(scope="session")
def exported(models, tokenizer, tmp_path_factory) -> Exported:
    """Gives the folder of a family's export with these settings."""
    written: dict[tuple, Path] = {}

    def folder(family: str, **settings) -> Path:
        key = (family, *sorted(settings.items()))
        if key not in written:
            out = tmp_path_factory.mktemp("exported") / family
            written[key] = save(family, models(family), tokenizer, out, **settings)
        return written[key]

    return folder


@pytest.fixture(scope="session")
def opened() -> Callable[[Path], Any]:
    """Gives a SavedModel as TensorFlow loads it, once for all tests."""
    load, known = tf.saved_model.load, {}

    def of(folder: Path) -> Any:
        place = Path(folder).resolve()
        if place not in known:
            known[place] = load(str(place))
        return known[place]

    return of


@pytest.fixture(scope="session")
def loaded(exported, opened) -> Callable[..., Any]:
    """Gives a family's export as TensorFlow loads it, once for all tests."""
    return lambda family, **settings: opened(exported(family, **settings))


# Loads the SavedModel of any folder, once for all tests.
_session = functools.cache(SessionModel.load)


@pytest.fixture
def loads_once(monkeypatch, opened) -> None:
    """Commands of this process reuse an export that was loaded before."""
    monkeypatch.setattr(tf.saved_model, "load", opened)
    monkeypatch.setattr(SessionModel, "load", _session)


@pytest.fixture(scope="session")
def lite_file(models, tmp_path_factory) -> Exported:
    """Gives the LiteRT file of a family with these settings."""
    written: dict[tuple, Path] = {}

    def file(family: str, **settings) -> Path:
        key = (family, *sorted(settings.items()))
        if key not in written:
            written[key] = tmp_path_factory.mktemp("lite") / f"{family}.tflite"
            models(family).export(written[key], format="litert", **settings)
        return written[key]

    return file


@pytest.fixture(scope="session")
def lite(lite_file) -> Callable[..., Any]:
    """Gives a family's LiteRT file as `bert_tf.load` opens it, once for all tests."""
    known: dict[Path, Any] = {}

    def load(family: str, **settings) -> Any:
        path = lite_file(family, **settings)
        if path not in known:
            known[path] = bert_tf.load(path)
        return known[path]

    return load
