"""What the tests of training share: a tokenized corpus, finished runs, processes to be killed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.config.run import RunConfig
from bert_tf.data.corpora import pretraining_data
from tests import tiny
from tests.runs.lives import Nursery, killed_after


@pytest.fixture(scope="session")
def pretraining_yaml(tmp_path_factory) -> Path:
    """`tiny.write_pretraining` of one layer, with its corpus tokenized already."""
    folder = tmp_path_factory.mktemp("pretraining")
    path = tiny.write_pretraining(folder)
    tokenizer = tiny.tokenizer()
    pretraining_data.build(load_config(path), tokenizer, folder / "tokens")
    text = (
        path.read_text()
        .replace("corpus.txt", "tokens")
        .replace("sentence_per_line", "token_shards")
        .replace("num_hidden_layers: 2", "num_hidden_layers: 1")
    )
    path.write_text(text)
    return path


@pytest.fixture
def load_pretraining(pretraining_yaml) -> Callable[..., RunConfig]:
    """Loads that configuration, with settings."""
    return lambda *settings: load_config(pretraining_yaml, settings)


@pytest.fixture(scope="session")
def pretrained(pretraining_yaml, tmp_path_factory) -> Path:
    """A finished pre-training."""
    run = tmp_path_factory.mktemp("runs") / "pretrained"
    runs.pretrain(load_config(pretraining_yaml), run)
    return run


@pytest.fixture(scope="session")
def finetuned(tmp_path_factory) -> tuple[Path, dict[str, float]]:
    """A finished fine-tuning, and its metrics; `killed` next to it is the same after step 20."""
    folder = tmp_path_factory.mktemp("runs")
    config = load_config(
        tiny.write_finetuning(folder), ["train.learning_rate=0.005", "model.num_hidden_layers=2"]
    )
    with killed_after(20, folder):
        return folder / "run", runs.finetune(config, folder / "run")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory) -> Iterator[Nursery]:
    """Where processes come from."""
    nursery = Nursery(tmp_path_factory.mktemp("nursery") / "log.txt")
    yield nursery
    nursery.close()
