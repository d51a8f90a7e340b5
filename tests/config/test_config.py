"""The configuration: typed, checked key by key, inherited, searched and written back."""

import os

import pytest
from pydantic import ValidationError

from bert_tf.config.changes import difference, tell_difference
from bert_tf.config.reading import load_config
from bert_tf.config.train import Range
from bert_tf.errors import UserError

MINIMAL = """\
task: classification
data:
  path: reviews
  format: tsv
tokenizer:
  vocab: vocab.txt
model:
  preset: bert-tiny-uncased
train:
  epochs: 3
"""
PRETRAINING = MINIMAL.replace("classification", "pretraining")
TAGS = "task=token_classification"


@pytest.fixture
def load(tmp_path):
    """Loads a text as the file `run.yaml`, with overrides."""

    def load(*overrides, text=MINIMAL):
        (tmp_path / "run.yaml").write_text(text)
        return load_config(tmp_path / "run.yaml", overrides)

    return load


def error(load, *overrides, text=MINIMAL):
    with pytest.raises(UserError) as raised:
        load(*overrides, text=text)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_minimal_file_has_the_defaults_of_the_reference(load):
    run = load()
    pretraining = load(text=PRETRAINING)

    assert run.task == "classification"
    train, data = run.train, pretraining.data
    assert (train.batch_size, train.max_length) == (32, 128)
    assert (train.learning_rate, train.warmup_fraction) == (5e-5, 0.1)
    assert (train.weight_decay, train.gradient_clip) == (0.01, 1.0)
    assert (data.masked_lm_prob, data.short_seq_prob, data.next_sentence) == (0.15, 0.1, True)
    assert run.searched == {}


def test_a_number_without_a_point_is_a_number(load):
    epochs = load().train.epochs

    assert epochs == 3.0
    assert type(epochs) is float


def test_the_configuration_cannot_be_changed(load):
    with pytest.raises(ValidationError, match="frozen"):
        load().train.seed = 1


def test_settings_lie_over_the_file_and_the_last_one_wins(load):
    run = load("train.seed=1", "train.seed=2", "model.hidden_act=gelu", "data.label_column=no")

    assert run.train.seed == 2
    assert run.model.hidden_act == "gelu"
    assert run.data.label_column == "no"


def test_a_null_puts_a_default_of_null_back(load):
    run = load("train.epochs=null", "train.steps=10", "train.gradient_clip=null")

    assert (run.train.epochs, run.train.steps, run.train.gradient_clip) == (None, 10, None)


def test_a_section_with_nothing_in_it_is_all_defaults(load):
    assert load(text=MINIMAL + "init:\n").init.checkpoint is None


def test_model_changes_are_the_sizes_that_are_given(load):
    run = load("model.hidden_size=64", "model.hidden_dropout_prob=0")

    assert run.model.changes() == {"hidden_size": 64, "hidden_dropout_prob": 0.0}


@pytest.mark.parametrize(
    ("setting", "nearest"),
    [
        ("train.learning_rte=1", "train.learning_rate"),
        ("train.lr=1", "train.learning_rate"),
        ("train.batchsize=1", "train.batch_size"),
        ("learning_rate=1", "train.learning_rate"),
        ("data.vocab=a", "tokenizer.vocab"),
        ("trian=1", "train"),
        ("model.vocab_size=100", "model.type_vocab_size"),
        ("train." + "x" * 100_000 + "=1", "train."),
    ],
)
def test_an_unknown_key_names_the_nearest_valid_one(load, setting, nearest):
    message = error(load, setting)

    assert "unknown key '" + setting.partition("=")[0][:60] in message
    assert f"the nearest valid key is {nearest}" in message


def test_an_unknown_section_is_told_by_its_own_name(load):
    assert error(load, "trian.seed=1").startswith("--set trian.seed=1: unknown key 'trian'; ")


def test_an_unknown_key_of_a_file_names_file_and_line(load):
    message = error(load, text=MINIMAL + "  leraning_rate: 5e-5\n")

    assert message.endswith(
        "run.yaml:11: unknown key 'train.leraning_rate'; "
        "the nearest valid key is train.learning_rate"
    )


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("train.batch_size=true", "must be a whole number, got true"),
        ("train.batch_size=null", "must be a whole number, got null"),
        ("train.weight_decay=-1e-3", "must be at least 0, got -0.001"),
        ("train.warmup_fraction=1.5", "must be at most 1, got 1.5"),
        ("train.warmup_fraction=1" + 400 * "0", "must be a number, got 1000"),
        ("train.precision=no", "must be 'float32' or 'bfloat16', got \"no\""),
        ("train.gradient_clip=no", 'must be a number, got "no"'),
        ("data.format=7", "must be a valid string, got 7"),
        ("data.path=", "must be a valid string, got null"),
        ("data.path=[a, b]", 'must be a valid string, got ["a", "b"]'),
        ("data.text_columns=text", 'must be a list, got "text"'),
        ("data.text_columns=[a, b, c]", "must have at most 2 items, got"),
        ("data.text_columns=[]", "must not be empty, got []"),
        ("data.class_weights=even", "must be 'balanced' or a mapping, got \"even\""),
        ("data.class_weights.a=0", "must be greater than 0, got 0"),
        ("data.class_weights={}", "must not be empty, got {}"),
        ("tokenizer.vocab={a: b}", 'must be a valid string, got {"a": "b"}'),
        ("train=3", "train must be a section, got 3"),
        ("train=[1]", "train must be a section, got [1]"),
        ("task=classifcation", "task 'classifcation' is not known; set it to one of pretraining, "),
        ("task=[a]", "key task \"['a']\" is not known"),
    ],
)
def test_a_value_of_another_type_or_range_is_told_with_what_is_expected(load, setting, told):
    message = error(load, setting)

    assert setting.partition("=")[0] + " " in message
    assert told in message


def test_a_value_that_does_not_fit_names_file_and_line(load):
    message = error(load, text=MINIMAL.replace("epochs: 3", "epochs: three"))

    assert 'run.yaml:10: train.epochs must be a number, got "three"' in message


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("task: classification", "run.yaml: the key task is missing; set it to one of pretraini"),
        ("  format: tsv", "run.yaml:2: missing key data.format; add it"),
        ("  epochs: 3", "run.yaml:9: train needs either train.steps or train.epochs"),
        (
            "  vocab: vocab.txt",
            "run.yaml: no vocabulary is given; set tokenizer.vocab, or init.checkp",
        ),
    ],
)
def test_a_missing_key_is_told_with_its_section(load, line, told):
    assert told in error(load, text=MINIMAL.replace(line, "", 1))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["train.steps=5"], "needs either train.steps or train.epochs, but both are set"),
        (["train.epochs=null"], "needs either train.steps or train.epochs, but neither is set"),
        (["model.preset=null", "model.hidden_size=8"], "no model is given; set model.preset"),
        (["train.accumulation_steps=5"], "train.batch_size 32 is not a multiple of train.accum"),
        (
            ["train.tpu=a"],
            "train.tpu is for train.strategy tpu, not one_device; change train.strategy",
        ),
        (["train.bias_correction=true", "train.optimizer=lamb"], "is for train.optimizer adamw"),
        (
            ["task=question_answering", "data.null_threshold=0"],
            "data.null_threshold requires data.unanswerable: true; set that, or remove data.null",
        ),
        ([TAGS, "model.lstm_units=8"], "model.lstm_units requires model.features; set model.feat"),
        (
            [TAGS, "model.features=last", "train.frozen_layers=0"],
            "train.frozen_layers is for fine-tuning, but model.features freezes the encoder; rem",
        ),
        (
            [TAGS, "model.features=last", "train.layer_decay=0.9"],
            "train.layer_decay is for fine-tuning, but model.features freezes the encoder; remove",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_told(load, settings, told):
    assert told in error(load, *settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["data.next_sentence=no"], 'must be true or false, got "no"'),
        (["data.path="], "must be a valid string or a list, got null"),
        (["data.path=[a, 3]"], "data.path.1 must be a valid string, got 3"),
        (["data.label_column=a"], "unknown key 'data.label_column'"),
        (["train.early_stopping=1"], "unknown key 'train.early_stopping'"),
        (["data.mask_share=0.9", "data.random_share=0.2"], "are more than 1 together; lower one"),
        (["data.dev_path=held_out"], "data.dev_path is for data.format tfrecord, not tsv"),
        (["train.long_fraction=0.5"], "train.long_fraction is for the steps with train.long_le"),
        (["train.long_batch_size=8"], "train.long_length, which is not set; set it, or remove"),
        (["data.split=test"], "data.split is for data.format tfds, not tsv; remove data.s"),
        (["data.cross_documents=false"], "requires data.next_sentence: false; set it, or remove"),
    ],
)
def test_keys_of_pre_training_are_checked(load, settings, told):
    assert told in error(load, *settings, text=PRETRAINING)


def test_keys_that_other_data_or_another_attention_do_not_use_may_be_inherited(load):
    shards = ["data.format=token_shards", "data.split=test", "data.dev_fraction=0.1"]
    one_way = ["model.attention=left_to_right", "data.next_sentence=false"]

    assert load(*shards, text=PRETRAINING).data.split == "test"
    assert load(*one_way, "data.masked_lm_prob=0.2", text=PRETRAINING).data.masked_lm_prob == 0.2


@pytest.mark.parametrize(
    "setting",
    "masked_lm_prob=0.2 max_predictions_per_seq=20 mask_share=0.7 random_share=0.2 "
    "short_seq_prob=0 cross_documents=false whole_word_masking=true".split(),
)
def test_keys_already_applied_to_tfrecords_are_not_silently_ignored(load, setting):
    records = ["data.format=tfrecord", "data.dev_path=held_out"]
    message = error(load, *records, f"data.{setting}", text=PRETRAINING)

    key = setting.partition("=")[0]
    assert f"data.{key} was chosen when the records were written; remove it" in message
    assert load(*records, text=PRETRAINING).data.dev_path == "held_out"


def test_a_model_may_come_from_sizes_or_from_a_checkpoint(load):
    sizes = ("hidden_size=8", "num_hidden_layers=1", "num_attention_heads=2")

    assert load("model.preset=null", *(f"model.{size}" for size in sizes)).model.hidden_size == 8
    assert load("model.preset=null", "init.checkpoint=x").init.checkpoint == "x"


def test_paths_start_at_the_file_then_at_the_working_folder(load, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (tmp_path / "vocab.txt").touch()
    (elsewhere / "vocab.txt").touch()
    (elsewhere / "reviews").mkdir()

    run = load("init.checkpoint=glue/mnli")

    assert run.tokenizer.vocab == str(tmp_path / "vocab.txt")
    assert run.data.path == str(elsewhere / "reviews")
    assert run.init.checkpoint == "glue/mnli"
    # One of the command line starts there at once.
    assert load("tokenizer.vocab=vocab.txt").tokenizer.vocab == str(elsewhere / "vocab.txt")


def test_an_inherited_path_starts_at_the_file_that_names_it(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "vocab.txt").touch()
    (tmp_path / "base" / "run.yaml").write_text(MINIMAL)
    (tmp_path / "run.yaml").write_text("base: base/run.yaml\ntrain: {seed: 4}")

    run = load_config(tmp_path / "run.yaml")

    assert run.tokenizer.vocab == str(tmp_path / "base" / "vocab.txt")
    assert (run.train.epochs, run.train.seed) == (3.0, 4)


def test_globs_and_lists_of_paths_are_found_too(load, tmp_path):
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "one.txt").touch()

    text = MINIMAL.replace("path: reviews", "path: ['books/*.txt', books, missing]")
    run = load("task=pretraining", text=text)

    assert run.data.path == (f"{tmp_path}/books/*.txt", f"{tmp_path}/books", "missing")


def test_lists_under_train_are_a_search_over_all_combinations(load):
    run = load("train.learning_rate=[5e-5, 3e-5]", "train.seed=[0, 1, 2]", "train.epochs=[2]")

    trials = [(trial.train.learning_rate, trial.train.seed) for trial in run.trials()]
    assert run.searched == {"epochs": (2.0,), "learning_rate": (5e-5, 3e-5), "seed": (0, 1, 2)}
    assert trials == [(5e-5, 0), (5e-5, 1), (5e-5, 2), (3e-5, 0), (3e-5, 1), (3e-5, 2)]
    assert all(trial.searched == {} for trial in run.trials())


def test_a_configuration_without_lists_is_its_own_only_trial(load):
    assert load().trials() == [load()]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("train.seed=[1, x]", 'train.seed must be a whole number, got "x"'),
        ("train.seed=[[1]]", "train.seed must be a whole number, got [1]"),
        ("train.seed=[]", "train.seed is an empty list"),
        ("train.sede=[1, 2]", "the nearest valid key is train.seed"),
        ("train.steps=[1, 2]", "but both are set"),
        ("train.seed=[1, 2, 1]", "train.seed contains 1 twice; remove one of them"),
        ("train.learning_rate=[1e-4, 0.0001]", "train.learning_rate contains 0.0001 twice"),
        ("train.eval_steps=[null, 5, null]", "train.eval_steps contains null twice"),
        ("train.strategy=[one_device, mirrored]", "train.strategy is a list, but a grid search"),
        ("train.tpu=[a]", "train.tpu is a list, but a grid search cannot vary it; give one"),
        ("train.accumulation_steps=[1, 5]", "train.batch_size 32 is not a multiple of train.accu"),
        ("train.deterministic=[true, false]", "train.deterministic is a list, but a grid search"),
    ],
)
def test_a_value_of_a_search_is_checked_as_any_other(load, setting, told):
    assert told in error(load, setting)


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["train.learning_rate=[5e-5, 3e-5]", "train.eval_steps=[null, 10]"],
        ["train.gradient_clip=null", "data.label_column='5e-5'", "data.text_columns=[no, 'null']"],
        ["data.class_weights={no: 2, 'null': 1.5}"],
        ["data.class_weights=balanced"],
        ["task=pretraining", "data.path=[a, b]", "tokenizer.vocab='ü\u2028: #'"],
        ["model.layer_norm_eps=1e-12"],
    ],
)
def test_what_is_written_loads_to_the_same_configuration(load, settings):
    run = load(*settings)

    assert load(text=run.to_yaml()) == run


def test_what_is_written_says_every_default_that_is_not_null(load):
    written = load(text=PRETRAINING).to_yaml()

    assert "learning_rate: 5.0e-05\n" in written
    assert "next_sentence: true\n" in written
    assert "masked_lm_prob: 0.15\n" in written


def test_a_written_configuration_does_not_depend_on_the_working_folder(load, tmp_path, monkeypatch):
    (tmp_path / "vocab.txt").touch()
    run = load()
    monkeypatch.chdir(os.sep)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(run.to_yaml())

    assert load_config(tmp_path / "run" / "config.yaml") == run


def test_a_difference_is_told_by_keys(load):
    old = load("train.seed=[1, 2]")

    assert difference(old, load("train.seed=[1, 2]")) == {}
    assert difference(old, load("train.seed=1")) == {"train.seed": ((1, 2), 1)}
    keys = difference(load(), load("train.batch_size=8", "model.hidden_size=8"))
    assert [*keys] == ["model.hidden_size", "train.batch_size"]
    assert [*difference(load(), load("task=pretraining"))] == ["task"]


@pytest.mark.parametrize(
    "setting",
    "checkpoint_minutes=5 checkpoints_kept=9 log_steps=7 skip_nonfinite=true "
    "strategy=mirrored".split(),
)
def test_what_changes_no_number_is_no_difference(load, setting):
    assert difference(load(), load(f"train.{setting}")) == {}


def test_a_printed_difference_has_both_values(load):
    old = load("train.seed=[1, 2]")
    new = load("train.seed=1", "train.precision=bfloat16", "data.text_columns=[a, b]")

    assert tell_difference(old, new) == (
        'data.text_columns (null there, ["a", "b"] now), train.seed ([1, 2] there, 1 now), '
        "train.precision (float32 there, bfloat16 now)"
    )
    other = load(text=PRETRAINING)
    assert tell_difference(old, other) == "task (classification there, pretraining now)"


SEARCH = "search: {trials: 4}\n"
RANGES = [
    "train.learning_rate={low: 1e-5, high: 1e-4, log: true}",
    "train.epochs={low: 1, high: 3}",
    "train.batch_size={low: 8, high: 32, step: 8}",
]


def test_ranges_have_the_type_of_their_key_and_are_written_back(load):
    run = load(*RANGES, "train.seed=[1, 2]", text=MINIMAL + SEARCH)

    assert run.searched["seed"] == (1, 2)
    assert run.searched["learning_rate"] == Range(low=1e-5, high=1e-4, log=True)
    epochs, batch = run.searched["epochs"], run.searched["batch_size"]
    assert (type(epochs.low), type(batch.low)) == (float, int)
    assert run.train.batch_size == 8
    # Every end goes with every other.
    assert len(run.trials()) == 2**4
    assert all(trial.search is None and not trial.searched for trial in run.trials())
    assert load(text=run.to_yaml()) == run


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            ["train.epochs={low: 1, high: 3}", "search=null"],
            "train.epochs is a range, which requir",
        ),
        ([], "search has nothing to vary; give a key of train a list, or a range such as {low:"),
        (["train.epochs={low: 3, high: 1}"], "train.epochs: low 3 is not below high 1; correct"),
        (["train.epochs={low: 0, high: 1}"], "train.epochs must be greater than 0, got 0"),
        (
            ["train.epochs={low: 1, hi: 3}"],
            "key 'train.epochs.hi'; the nearest valid key is train.",
        ),
        (["train.epochs={low: 1}"], "missing key train.epochs.high; add it"),
        (["train.epochs={low: a, high: 3}"], "train.epochs.low must be a whole number or a number"),
        (
            ["train.batch_size={low: 1, high: 3, step: 0.5}"],
            "batch_size.step must be a whole number",
        ),
        (["train.batch_size={low: 1.5, high: 3}"], "train.batch_size must be a whole number, got"),
        (["train.epochs={low: 1, high: 3, log: true, step: 1}"], "that there is no step"),
        (["train.epochs={low: 1, high: 3, step: 4}"], "step 4 does not fit between low and high"),
        (
            ["train.precision={low: 1, high: 3}"],
            "train.precision must be 'float32' or 'bfloat16', g",
        ),
        (
            ["train.tpu={low: 1, high: 3}"],
            "train.tpu is a range, which requires the section search",
        ),
        (
            ["search.trails=3"],
            "unknown key 'search.trails'; the nearest valid key is search.trials",
        ),
        (["search.trials=0"], "search.trials must be at least 1, got 0"),
        (["task=pretraining"], "unknown key 'search'"),
    ],
)
def test_a_search_and_its_ranges_are_checked(load, settings, told):
    assert told in error(load, *settings, text=MINIMAL + SEARCH)


def test_a_range_that_is_wrong_names_its_line(load):
    text = MINIMAL.replace("epochs: 3", "epochs:\n    low: 3\n    hi: 5") + SEARCH
    assert "run.yaml:12: unknown key 'train.epochs.hi'" in error(load, text=text)


def test_a_search_may_get_more_trials_and_nothing_else(load):
    text = MINIMAL + SEARCH
    old = load(*RANGES, text=text)

    assert difference(old, load(*RANGES, "search.trials=9", text=text)) == {}
    wider = load(*RANGES[1:], "train.learning_rate={low: 1e-5, high: 1e-3}", text=text)
    assert tell_difference(old, wider).startswith(
        'train.learning_rate ({"low": 1e-05, "high": 0.00'
    )
    assert [*difference(old, load(*RANGES, "search.seed=1", text=text))] == ["search.seed"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            ["train.optimizer=adam"],
            'or a section or a name such as package.module:Name, got "adam"',
        ),
        (["train.callbacks=a.b:C"], 'train.callbacks must be a list, got "a.b:C"'),
        (
            ["train.callbacks=['a b:C']"],
            "train.callbacks.0 must be a section or a name such as pac",
        ),
        (
            ["train.schedule={nam: a.b}"],
            "unknown key 'train.schedule.nam'; the nearest valid key is",
        ),
        (
            ["train.optimizer=a.b:C", "train.adam_epsilon=1e-8"],
            "adam_epsilon has no effect with thi",
        ),
        (
            ["train.optimizer=a.b:C", "train.layer_decay=0.9"],
            "layer_decay has no effect with this t",
        ),
        (
            ["train.schedule=a.b:C", "train.learning_rate=1e-4"],
            "no effect with this train.schedule",
        ),
        (["task=pretraining", "train.metrics=[a.b]"], "unknown key 'train.metrics'"),
    ],
)
def test_what_is_imported_is_checked(load, settings, told):
    assert told in error(load, *settings)


def test_what_is_imported_knows_its_place_and_is_written_back(load, tmp_path):
    lines = "  callbacks: [a.b.C, {name: 'd:E', arguments: {path: $run/log, n: 3}}]\n"
    lines += "  schedule:\n    name: f:G\n    arguments: {rate: $learning_rate}\n"
    run = load(
        "train.learning_rate=[1e-4, 1e-3]", "train.optimizer=[adamw, h:I]", text=MINIMAL + lines
    )

    one, other = run.train.named["callbacks"]
    assert (one.name, one.arguments, one.place) == ("a.b.C", {}, f"{tmp_path}/run.yaml:11")
    assert (other.name, other.arguments) == ("d:E", {"path": "$run/log", "n": 3})
    assert run.train.named["schedule"][0].place == f"{tmp_path}/run.yaml:13"
    last = run.trials()[-1].train.named["optimizer"][0]
    assert last.place == "--set train.optimizer=[adamw, h:I]"
    assert load(text=run.to_yaml()) == run
    # Callbacks may change between two sessions of a run, and optimizers may not.
    assert difference(load(), load("train.callbacks=[a:B]")) == {}
    assert tell_difference(load(), load("train.optimizer=a:B")) == (
        "train.optimizer (adamw there, a:B now)"
    )
