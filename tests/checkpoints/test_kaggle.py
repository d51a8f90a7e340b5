"""Addresses on Kaggle, through a stand-in for the library kagglehub, without a network."""

import sys
import types
from pathlib import Path

import pytest

import bert_tf
from bert_tf import UserError
from bert_tf.checkpoints import reading

FIXTURES = Path(__file__).parents[1] / "fixtures"
ADDRESS = "kaggle://google/bert/tensorFlow2/en-uncased-l-12"


@pytest.fixture
def asked(monkeypatch):
    """The handles that kagglehub had to download; it has one model in two versions."""
    handles = []

    def model_download(handle):
        handles.append(handle)
        if not handle.startswith(ADDRESS.removeprefix("kaggle://")):
            raise RuntimeError("404 Client Error.\n\nResource not found at URL")
        return str(FIXTURES / "tf_hub_tiny")

    library = types.SimpleNamespace(model_download=model_download)
    monkeypatch.setitem(sys.modules, "kagglehub", library)
    return handles


@pytest.mark.parametrize("version", ["", "/3"])
def test_an_address_opens_wherever_a_name_does(asked, version):
    assert reading.find(ADDRESS + version).encoder.hidden_size == 8
    assert bert_tf.MaskedLM.from_checkpoint(ADDRESS + version).encoder.config.num_hidden_layers == 2
    assert asked == [(ADDRESS + version).removeprefix("kaggle://")] * 2


@pytest.mark.parametrize(
    "address",
    [
        "kaggle://",
        "kaggle://google/bert",
        "kaggle://google/bert/tensorFlow2/x/latest",
        "kaggle://google/bert/tensorFlow2/x/0",
        "kaggle://google/bert/tensorFlow2/x/1/2",
        "kaggle://google/bert/tensorFlow2/x@1",
        "kaggle:///bert/tensorFlow2/x",
        "kaggle://google/b rt/tensorFlow2/x",
    ],
)
def test_another_form_is_refused(asked, address):
    with pytest.raises(
        UserError, match=r"is not of the form kaggle://owner/model/framework/variat"
    ):
        bert_tf.load(address)
    assert not asked


def test_what_kaggle_refuses_and_a_missing_library_are_one_sentence(asked, monkeypatch):
    with pytest.raises(
        UserError, match=r"Kaggle \(404 Client Error\.\); check its spelling"
    ) as error:
        bert_tf.load("kaggle://a/b/c/d")
    assert "\n" not in str(error.value)
    monkeypatch.setitem(sys.modules, "kagglehub", None)
    with pytest.raises(UserError, match="requires the extra kaggle .*; install it: pip install"):
        bert_tf.load(ADDRESS)
