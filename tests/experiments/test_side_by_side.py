"""Two pre-trainings of opposite directions become one encoder that can be fine-tuned."""

import dataclasses

import numpy as np
import pytest

from bert_tf import TextClassifier
from bert_tf.checkpoints import conversion, reading
from bert_tf.cli.parser import main
from bert_tf.encoder.ablations import OneWayEncoder, encoder_for
from bert_tf.errors import UserError
from bert_tf.experiments.pretraining import side_by_side
from bert_tf.text import Tokenizer
from tests.tiny import VOCABULARY, encoder_config, write_finetuning

WAYS = ("left_to_right", "right_to_left")


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    """A checkpoint of each direction, and one that is narrower."""
    folder = tmp_path_factory.mktemp("ways")
    tokenizer = Tokenizer(VOCABULARY)
    for way in WAYS:
        encoder = encoder_for(encoder_config(attention=way))
        conversion.save(encoder, folder / way, tokenizer=tokenizer)
    narrow = encoder_for(encoder_config(4, attention="right_to_left"))
    conversion.save(narrow, folder / "narrow", tokenizer=tokenizer)
    return folder


def test_both_are_read_back_whole(ways, tmp_path):
    side_by_side.join(*(ways / way for way in WAYS), tmp_path / "both")

    checkpoint = reading.find(tmp_path / "both")
    assert checkpoint.read_vocabulary() == tuple(VOCABULARY)
    model = TextClassifier(encoder_for(checkpoint.encoder), None, range(2))
    report = checkpoint.fill(model)
    assert {name.split("/")[-2] for name in report.new} == {"pooler", "classifier"}
    for way, found in zip(WAYS, model.encoder.towers().values(), strict=True):
        expected = OneWayEncoder.from_checkpoint(ways / way)
        assert found.config.hidden_size == expected.config.hidden_size
        ours = {weight.path.split("encoder/", 1)[-1]: weight for weight in expected.weights}
        compared = 0
        for part in (found.embeddings, *found.blocks):
            for weight in part.weights:
                path = weight.path.removeprefix("encoder/").removeprefix("right_to_left/")
                np.testing.assert_array_equal(weight, ours[path])
                compared += 1
        assert compared == len(ours) - 2


def test_what_does_not_belong_together_is_refused(ways, tmp_path):
    left, right = (ways / way for way in WAYS)
    with pytest.raises(UserError, match="reads right_to_left, where left_to_right is required"):
        side_by_side.join(right, left, tmp_path / "both")
    with pytest.raises(UserError, match="hidden_size is 8 in .*, and 4 in"):
        side_by_side.join(left, ways / "narrow", tmp_path / "both")
    (tmp_path / "both").mkdir()
    with pytest.raises(UserError, match="exists already"):
        side_by_side.join(left, right, tmp_path / "both")


@pytest.mark.slow
@pytest.mark.parametrize("bilstm", [False, True])
def test_it_is_fine_tuned_and_evaluated_like_any_other(ways, tmp_path, bilstm):
    both = tmp_path / "both"
    side_by_side.join(*(ways / way for way in WAYS), both)
    config = write_finetuning(tmp_path)
    settings = [
        *(f"model.{size}=null" for size in ("hidden_size", "num_hidden_layers")),
        *(f"model.{size}=null" for size in ("num_attention_heads", "max_position_embeddings")),
        *(f"init.checkpoint={both}", "train.epochs=1", "train.frozen_layers=1"),
        *("train.layer_decay=0.5", f"model.bilstm={str(bilstm).lower()}"),
    ]
    run = tmp_path / "run"
    assert main(["finetune", str(config), "--out", str(run), "--set", *settings]) == 0

    checkpoint = reading.find(run)
    assert checkpoint.encoder == dataclasses.replace(
        reading.find(both).encoder, bilstm=bilstm, initializer_range=0.1, hidden_dropout_prob=0.0
    )
    before, after = (path / "model.safetensors" for path in (both, checkpoint.folder))
    before, after = (reading.native.tensors.load(path) for path in (before, after))
    for way in ("encoder", "encoder/right_to_left"):
        for frozen in ("embeddings/word_embeddings", "layer_0/output/kernel"):
            np.testing.assert_array_equal(before[f"{way}/{frozen}"], after[f"{way}/{frozen}"])
        moved = f"{way}/layer_1/output/kernel"
        assert np.abs(before[moved] - after[moved]).max() > 0
    metrics = (run / "metrics.json").read_text()
    assert main(["evaluate", str(run)]) == 0
    assert (run / "metrics.json").read_text() == metrics
