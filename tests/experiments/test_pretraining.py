"""The pre-training experiments are those of the paper's tables 5 and 6."""

from pathlib import Path

import pytest

from bert_tf.config.reading import load_config

FOLDER = Path(__file__).parents[2] / "experiments" / "pretraining"


@pytest.mark.parametrize(
    ("name", "next_sentence", "attention"),
    [
        ("base", True, None),
        ("base_no_nsp", False, None),
        ("base_left_to_right", False, "left_to_right"),
        ("base_right_to_left", False, "right_to_left"),
    ],
)
def test_what_is_left_out_one_after_the_other(name, next_sentence, attention):
    config = load_config(FOLDER / f"{name}.yaml")
    assert config.data.next_sentence == next_sentence
    assert config.model.attention == attention
    assert config.model.preset == "bert-base-uncased"
    assert config.train == load_config(FOLDER / "base.yaml").train


def test_the_six_sizes():
    sizes = []
    for path in (FOLDER / "sizes").glob("*.yaml"):
        model = load_config(path).model
        size = (model.num_hidden_layers, model.hidden_size, model.num_attention_heads)
        assert path.stem == "x".join(map(str, size))
        assert model.preset is None
        sizes.append(size)
    wide = [(12, 1024, 16), (24, 1024, 16)]
    assert sorted(sizes) == sorted([(3, 768, 12), (6, 768, 3), (6, 768, 12), (12, 768, 12), *wide])


@pytest.mark.parametrize("task", ["mnli", "qnli", "mrpc", "sst2", "squad"])
def test_the_last_row_of_table_5_is_fine_tuned_with_a_bilstm(task):
    config = load_config(FOLDER.parent / "bilstm" / f"{task}.yaml")
    assert config.model.bilstm
    assert config.init.checkpoint.endswith("base_left_to_right")
