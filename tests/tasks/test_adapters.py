"""Low-rank adapters: trained in `fit` and in runs, merged where models are saved, and peft's."""

import json

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import runs
from bert_tf.checkpoints import tensors
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.reading import load_config
from bert_tf.encoder.ablations import encoder_for
from bert_tf.errors import UserError
from bert_tf.training.checkpointing import ADAPTER_FILE
from bert_tf.training.loop import AfterUpdate
from tests import tiny
from tests.checkpoints.tiny_models import FIXTURES
from tests.tasks import tiny_objects as objects

# Made by peft 0.21.2, see tests/fixtures/make_peft.py.
PEFT = {
    "BertForSequenceClassification": bert_tf.TextClassifier,
    "DistilBertForSequenceClassification": bert_tf.TextClassifier,
    "ElectraForSequenceClassification": bert_tf.TextClassifier,
    "BertForMaskedLM": bert_tf.MaskedLM,
}
LEARNERS = {
    "classifier": (objects.TEXTS, objects.LABELS),
    "tagger": (objects.WORDS, objects.TAGS),
    "answerer": ((objects.QUESTIONS, objects.CONTEXTS), objects.ANSWERS),
    "filler": (objects.TEXTS, None),
    "embedder": ((objects.TEXTS[:8], objects.TEXTS[2:10]), None),
}
FAST = {"epochs": 3, "batch_size": 8, "learning_rate": 0.02, "verbose": 0, "seed": 0}
KERNELS = [
    f"encoder/layer_0/{name}/kernel"
    for name in ("attention/query_key_value", "attention/output", "intermediate", "output")
]


def weights_of(model):
    return {name: weight.numpy() for name, weight in weight_names(model).items()}


def changed(before, model):
    after = weights_of(model)
    return [name for name in before if not np.array_equal(before[name], after[name])]


def learn(model, x=objects.TEXTS, y=objects.LABELS, **options):
    return model.fit(x, y, **FAST | options).history


@pytest.mark.parametrize("name", PEFT)
def test_adapters_of_peft_compute_the_same_and_are_written_as_peft_does(name, tmp_path):
    folder, base = FIXTURES / "peft" / name, FIXTURES / "huggingface_heads" / name
    model = PEFT[name].from_checkpoint(base)
    model.load_adapter(folder)
    given = np.load(base / "expected.npz")
    inputs = {key: given[key] for key in ("input_word_ids", "input_mask", "input_type_ids")}
    if name == "BertForMaskedLM":
        inputs["masked_lm_positions"] = np.tile(np.arange(7, dtype=np.int32), (2, 1))
    expected, real = np.load(folder / "expected.npz")["logits"], inputs["input_mask"] > 0
    logits = np.reshape(model(inputs), expected.shape)
    if expected.ndim == 3:
        logits, expected = logits[real], expected[real]
    np.testing.assert_allclose(logits, expected, atol=2e-5)
    model.save_adapter(tmp_path / "adapter")
    theirs, ours = (
        tensors.load(f / "adapter_model.safetensors") for f in (folder, tmp_path / "adapter")
    )
    assert {*theirs} <= {*ours} and not any(".lora_" in each for each in {*ours} - {*theirs})
    assert all(np.array_equal(ours[each], theirs[each]) for each in theirs)
    again = PEFT[name].from_checkpoint(base)
    again.load_adapter(tmp_path / "adapter")
    before, after = weights_of(model), weights_of(again)
    # BERT's masked language model has no pooler.
    there = [each for each in before if "pooler" not in each or "MaskedLM" not in name]
    assert all(np.allclose(before[each], after[each], atol=1e-6) for each in there)


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", LEARNERS)
def test_the_head_and_low_rank_updates_are_trained_and_nothing_else(name, tmp_path):
    x, y = LEARNERS[name]
    model, base = getattr(objects, name)(), getattr(objects, name)()
    if getattr(model, "labels", None) == () and model.has_labels:
        model.learn_from(model.given(x, y))
    before = weights_of(model)
    losses = learn(model, x, y, lora=2, epochs=8)["loss"]
    assert losses[-1] < losses[0] and model.adapter is None
    assert weights_of(model).keys() == before.keys()
    found = changed(before, model)
    assert [each for each in found if each.startswith("encoder/")] == KERNELS
    assert {*found} == {*KERNELS} | {each for each in before if not each.startswith("encoder/")}
    ranks = [np.linalg.matrix_rank(weights_of(model)[n] - before[n], tol=1e-4) for n in KERNELS]
    assert ranks[0] in (4, 5, 6) and {*ranks[1:]} <= {1, 2}  # three of rank 2 share a kernel
    # The untrained model with the adapter equals the trained model.
    model.save_adapter(tmp_path / "adapter")
    for each, value in before.items():
        if each in weight_names(base):
            weight_names(base)[each].assign(value)
    base.load_adapter(tmp_path / "adapter")
    assert base.labels == model.labels
    after = weights_of(base)
    for each, value in weights_of(model).items():
        np.testing.assert_allclose(after[each], value, atol=1e-5, err_msg=each)


def test_targets_and_frozen_layers_are_honoured(tmp_path):
    model = bert_tf.TextClassifier(objects.encoder(num_hidden_layers=2), objects.tokenizer())
    model.encoder.blocks[0].trainable = False
    before = weights_of(model)
    learn(model, lora={"rank": 2, "alpha": 3, "dropout": 0.1, "targets": ["query", "output"]})
    found = changed(before, model)
    assert [*found] == [
        "encoder/layer_1/attention/query_key_value/kernel",
        "encoder/layer_1/output/kernel",
    ]
    added = (weights_of(model)[found[0]] - before[found[0]]).reshape(16, 3, 16)
    assert np.abs(added[:, 0]).max() > 1e-3 and not added[:, 1:].any()
    model.save_adapter(tmp_path / "adapter")
    fields = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert (fields["r"], fields["lora_alpha"], fields["lora_dropout"]) == (2, 3, 0.1)
    modules = ["bert.encoder.layer.1.attention.self.query", "bert.encoder.layer.1.output.dense"]
    assert fields["target_modules"] == modules and fields["modules_to_save"] == ["classifier"]


@pytest.mark.end_to_end
def test_only_what_is_trained_is_in_the_optimizer_and_what_is_saved_meanwhile_is_merged(tmp_path):
    model = objects.classifier()
    answers, counts = [], []

    class Saver(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            counts.append(sum(each.shape[0] for each in model.optimizer.variables[1:]))
            model.save(tmp_path / f"{epoch}.keras")
            model.save_adapter(tmp_path / f"adapter{epoch}")
            model.export(tmp_path / f"exported{epoch}")
            answers.append(model.predict(objects.TEXTS[:2], verbose=0))

    best = keras.callbacks.EarlyStopping("val_loss", patience=5, restore_best_weights=True)
    data = (objects.TEXTS, objects.LABELS)
    learn(model, lora=2, epochs=2, callbacks=[Saver(), best], validation_data=data)
    # Two moments each for A and B of the six targets, and for the kernel and bias of the head.
    assert counts[0] == 2 * (3 * (16 + 2) + (16 + 2) + (16 + 2) + (32 + 2) + 16 + 2)
    answers.append(model.predict(objects.TEXTS[:2], verbose=0))
    copies = [bert_tf.load(tmp_path / name) for name in ("0.keras", "exported0", "1.keras")]
    for place, copy in zip((0, 0, 1), copies, strict=True):
        for ours, theirs in zip(answers[place], copy.predict(objects.TEXTS[:2]), strict=True):
            assert ours["probability"] == pytest.approx(theirs["probability"], abs=1e-5)
    assert answers[0] != answers[1]
    assert answers[1][0]["probability"] == pytest.approx(answers[2][0]["probability"], abs=1e-5)


@pytest.mark.end_to_end
def test_memory_can_be_saved_as_usual_and_a_compiled_model_keeps_its_optimizer():
    found = []
    for options in ({}, {"rematerialize": True, "accumulation_steps": 2}):
        model = objects.classifier(labels=["bad", "good"])
        model.compile(bert_tf.AdamW(0.02), **options)
        model.fit(objects.TEXTS, objects.LABELS, epochs=2, verbose=0, seed=0, lora=2)
        assert not model.optimizer.built
        found.append(weights_of(model))
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], atol=2e-4, err_msg=name)
    before = weights_of(model)
    model.fit(objects.TEXTS, objects.LABELS, verbose=0)
    assert "encoder/embeddings/word_embeddings" in changed(before, model)


@pytest.mark.end_to_end
def test_the_next_fit_starts_from_the_merged_weights(capsys, tmp_path):
    model = objects.classifier()
    last = learn(model, lora=2, epochs=8)["loss"][-1]
    assert learn(model, lora=2, epochs=1, learning_rate=1e-9)["loss"][0] < last + 0.05
    assert "the earlier adapter is now part of the weights" in capsys.readouterr().err
    before = weights_of(model)
    learn(model, epochs=1)
    assert {*before} == {*changed(before, model)}
    with pytest.raises(UserError, match=r"no adapter; train one with fit\(…, lora=8\)"):
        model.save_adapter(tmp_path / "adapter")


@pytest.mark.end_to_end
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    settings = ["train.lora={rank: 2, dropout: 0.1}", "train.epochs=3", "train.keep=best"]
    config = load_config(
        tiny.write_finetuning(tmp_path),
        [*settings, "train.checkpoint_steps=5", "train.learning_rate=0.02"],
    )
    metrics = runs.finetune(config, tmp_path / "whole")
    after = AfterUpdate.on_train_batch_end

    def dies(self, batch, logs=None):
        after(self, batch, logs)
        if self.step == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(AfterUpdate, "on_train_batch_end", dies)
        runs.finetune(config, tmp_path / "cut")
    kept = tensors.load(tmp_path / "cut/checkpoints/step-00000005" / ADAPTER_FILE)
    assert {*KERNELS} < {*kept} and len(kept) == 4 + 2 * 6
    assert runs.finetune(config, tmp_path / "cut") == metrics
    whole, cut = (bert_tf.load(tmp_path / name) for name in ("whole", "cut"))
    assert not changed(weights_of(whole), cut) and len(whole.weights) == len(weights_of(cut))
    assert metrics["accuracy"] == cut.evaluate(*_dev(tmp_path))["accuracy"]


def _dev(folder):
    lines = (folder / "dev.tsv").read_text().splitlines()[1:]
    return [[*column] for column in zip(*(line.split("\t") for line in lines), strict=True)]


def test_ranks_are_searched(tmp_path):
    config = load_config(
        tiny.write_finetuning(tmp_path), ["train.lora=[2, {rank: 4}]", "train.epochs=1"]
    )
    assert [trial.train.adapter.rank for trial in config.trials()] == [2, 4]
    (tmp_path / "again.yaml").write_text(config.to_yaml())
    assert load_config(tmp_path / "again.yaml").searched == config.searched


@pytest.mark.end_to_end
def test_what_does_not_fit_is_one_sentence(tmp_path):
    model, other = objects.classifier(), objects.classifier(labels=["x", "y"])
    for lora, message in (
        ({"rank": 0}, "lora.rank must be at least 1, got 0"),
        (0, "lora must be a section or at least 1, got 0"),
        ({"alpa": 1}, "unknown key 'lora.alpa'; the nearest valid key is lora.alpha"),
        ({"targets": ["qkv"]}, "'intermediate' or 'output', got \"qkv\""),
    ):
        with pytest.raises(UserError) as refused:
            learn(model, lora=lora)
        assert message in str(refused.value)
    model.encoder.trainable = False
    with pytest.raises(UserError, match="nothing to train: all layers of the encoder are frozen"):
        learn(model, lora=2)
    model.encoder.trainable = True
    learn(model, lora=2, epochs=1)
    model.save_adapter(tmp_path / "adapter")
    wide = bert_tf.TextClassifier(encoder_for(tiny.encoder_config(8)), objects.tokenizer())
    deep, folder = tmp_path / "deep", tmp_path / "adapter"
    two = bert_tf.TextClassifier(objects.encoder(num_hidden_layers=2), objects.tokenizer())
    learn(two, lora=2, epochs=1)
    two.save_adapter(deep)
    for case, place, message in (
        (other, folder, "has the labels bad, good, but the model has x, y"),
        (wide, folder, "/kernel has shape [16, 2], but the model needs [8, 2]"),
        (objects.classifier(), deep, "the model has no place for encoder.layer.1."),
        (objects.classifier(), tmp_path, "adapter_config.json"),
    ):
        with pytest.raises(UserError) as refused:
            case.load_adapter(place)
        assert message in str(refused.value) and "\n" not in str(refused.value)
    assert not wide.labels
    path = folder / "adapter_config.json"
    fields = json.loads(path.read_text())
    for key, value in (("peft_type", "IA3"), ("use_dora", True), ("r", 0), ("bias", "all")):
        path.write_text(json.dumps(fields | {key: value}))
        with pytest.raises(UserError, match=f"{key} is"):
            objects.classifier().load_adapter(folder)
