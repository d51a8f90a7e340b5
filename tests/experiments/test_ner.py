"""The experiments on named entities are read, and ask for what the paper did."""

from pathlib import Path

import pytest

from bert_tf.config.reading import load_config
from bert_tf.tasks.token_classification.model import FEATURES

FOLDER = Path(__file__).parents[2] / "experiments" / "ner"


def test_every_row_of_table_7_has_a_file():
    paths = FOLDER.glob("conll2003_features_*.yaml")
    runs = {path.stem.removeprefix("conll2003_features_"): path for path in paths}
    assert set(runs) == set(FEATURES)
    for name, path in runs.items():
        config = load_config(path)
        assert (config.model.features, config.model.lstm_units) == (name, 768)
        assert config.data.document_context


@pytest.mark.parametrize("size", ["", "_large"])
def test_fine_tuning_searches_what_the_paper_fine_tunes_with(size):
    config = load_config(FOLDER / f"conll2003{size}.yaml")
    assert config.search["learning_rate"] == (5e-5, 3e-5, 2e-5)
    assert config.search["epochs"] == (2, 3, 4)
    assert config.model.features is None and config.data.document_context
    assert ("large" in config.init.checkpoint) == bool(size)


def test_wnut17_names_the_files_of_its_authors(shared_data):
    config = load_config(FOLDER / "wnut17.yaml")
    for name in (config.data.train, config.data.dev, config.data.test):
        assert (shared_data / "wnut17" / name).is_file()
