"""What the tests of training share: a corpus that is tokenized once, and processes to be killed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bert_tf.config.reading import load_config
from bert_tf.config.run import RunConfig
from bert_tf.data.corpora import pretraining_data
from bert_tf.text import Tokenizer
from tests import tiny
from tests.runs.lives import Nursery


@pytest.fixture(scope="session")
def pretraining_yaml(tmp_path_factory) -> Path:
    """`tiny.write_pretraining` with its corpus tokenized already."""
    folder = tmp_path_factory.mktemp("pretraining")
    path = tiny.write_pretraining(folder)
    tokenizer = Tokenizer(tiny.VOCABULARY)
    pretraining_data.build(load_config(path), tokenizer, folder / "tokens")
    text = (
        path.read_text()
        .replace("corpus.txt", "tokens")
        .replace("sentence_per_line", "token_shards")
    )
    path.write_text(text)
    return path


@pytest.fixture
def load_pretraining(pretraining_yaml) -> Callable[..., RunConfig]:
    """Loads that configuration, with settings."""
    return lambda *settings: load_config(pretraining_yaml, settings)


@pytest.fixture(scope="module")
def nursery(tmp_path_factory) -> Iterator[Nursery]:
    """Where processes come from."""
    nursery = Nursery(tmp_path_factory.mktemp("nursery") / "log.txt")
    yield nursery
    nursery.close()
