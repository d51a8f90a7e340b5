"""Every training step is one XLA program whose shapes are known, which is what TPUs run.

No TPU is needed for that: the strategy `tpu` is replaced, and its other requirements stay.
"""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.runs import finetuning, pretraining
from bert_tf.training import distributed
from tests import tiny, tiny_questions, tiny_tags
from tests.interpret import tiny_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = ["train.strategy=tpu", "train.precision=bfloat16", "model.num_hidden_layers=1"]


class Prepared(BaseException):
    """All is ready for training."""


@pytest.fixture
def prepared(monkeypatch, tmp_path):
    """The model of a configuration, and the batches that it would be trained on."""

    def prepare(path, *settings):
        given = {}

        def train(folder, settings, model, checkpoints, phases, *_):
            given.update(model=model, batches=phases[0].batches_from(0, 0, 1))
            raise Prepared

        monkeypatch.setattr(distributed, "make_strategy", lambda _: tf.distribute.get_strategy())
        for module in (finetuning, pretraining):
            monkeypatch.setattr(module, "train", train)
        config = load_config(path, [*SETTINGS, *settings])
        start = runs.pretrain if config.task == "pretraining" else runs.finetune
        with pytest.raises(Prepared):
            start(config, tmp_path / "run")
        return given["model"], given["batches"]

    return prepare


def check_compiles(model, batches):
    """Trains a little with the compiled step; it fails on any operation that XLA does not know."""
    for spec in tf.nest.flatten(batches.element_spec):
        assert spec.shape.is_fully_defined()
    model.optimizer.build(model.trainable_variables)
    step = tf.function(model.train_step, jit_compile=True)
    losses, traced = [], set()
    for batch in batches.take(3):
        losses.append(float(step(batch)["loss"]))
        traced.add(step.experimental_get_tracing_count())
        model.reset_metrics()

    # The step is not traced again for another batch.
    assert len(traced) == 1
    assert np.isfinite(losses).all() and len(set(losses)) == 3
    assert int(model.optimizer.iterations) == 3


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["train.accumulation_steps=2", "train.optimizer=lamb"],
        ["train.skip_nonfinite=true", "train.gradient_clip=null"],
        ["model.attention=left_to_right", "data.next_sentence=false"],
    ],
)
def test_pre_training(prepared, pretraining_yaml, settings):
    check_compiles(*prepared(pretraining_yaml, *settings))


@pytest.mark.parametrize(
    ("write", "settings"),
    [
        (tiny.write_finetuning, ["train.accumulation_steps=2", "train.rematerialize=true"]),
        (tiny_questions.write_finetuning, []),
        (tiny_tags.write_tagging, []),
        (tiny_tags.write_tagging, ["model.features=last", "model.lstm_units=4"]),
        *((tiny_runs.CONFIGS[task], []) for task in ("regression", "multiple_choice", "reranking")),
    ],
)
def test_tiny_tasks(prepared, tmp_path, write, settings):
    check_compiles(*prepared(write(tmp_path), *settings))
