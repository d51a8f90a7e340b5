"""Texts longer than an input: their start, their first and last tokens, or all in windows."""

import json
import random
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.names import weight_names
from bert_tf.cli.parser import main
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.export.service import record_of
from bert_tf.interpret.subject import Subject
from bert_tf.tasks import long_texts
from bert_tf.text.windows import TextReader
from tests import tiny
from tests.processors import ends_in_bfloat16
from tests.tasks import tiny_objects
from tests.tasks.tiny_texts import write_config, write_lines

LENGTH, STRIDE = 16, 6
WINDOWS = {"long_text": "windows", "max_length": LENGTH, "stride": STRIDE}
TEXTS = ["the cat sat on the mat " * 8, "the cat sat", "dog " * 40, "", "a bird flew over the sea"]
FIRSTS = ["a cat sat", "dog " * 30, "cat", "good", "bad"]
GROUPS = [[TEXTS[0], "cat"], [TEXTS[2]], ["a", "dog", TEXTS[0]], [TEXTS[0] + "good"], ["sea"]]


def classifier(**settings):
    return tiny_objects.classifier(labels=["bad", "good"], **{**WINDOWS, **settings})


def regressor(**settings):
    return tiny_objects.regressor(pair=True, window_pooling="max", **{**WINDOWS, **settings})


def numbers(**settings):
    return tiny_objects.regressor(targets=["size", "price"], **{**WINDOWS, **settings})


def multi_labeller(**settings):
    labels = ["bad", "good"]
    return tiny_objects.multi_labeller(labels=labels, max_windows=3, **{**WINDOWS, **settings})


def embedder(**settings):
    prompts = {"prompts": {"q": "the dog : "}, "default_prompt": "q", "include_prompt": False}
    dense = {"dense": [{"units": 6}], "normalize": True}
    return tiny_objects.embedder(**{**WINDOWS, **prompts, **dense, **settings})


def reranker(**settings):
    return tiny_objects.reranker(**{**WINDOWS, **settings})


MODELS = {
    "attention": (lambda **given: classifier(window_pooling="attention", **given), TEXTS),
    "pairs": (regressor, (FIRSTS, TEXTS)),
    "numbers": (numbers, TEXTS),
    "labels": (multi_labeller, TEXTS),
    "vectors": (embedder, TEXTS),
    "ranking": (reranker, (FIRSTS, GROUPS)),
}


# The models that differ most.
ALIKE = ("attention", "ranking")


def flat(answers):
    """All numbers of answers, in their order."""
    if isinstance(answers, dict):
        return [number for each in answers.values() for number in flat(each)]
    if isinstance(answers, list | tuple | np.ndarray):
        return [number for each in answers for number in flat(each)]
    return [] if isinstance(answers, str) else [float(answers)]


def rows_of(model, x):
    return Columns(model.input_names, x if isinstance(x, tuple) else (x,))


def made_task(rows, seed):
    """Texts of 40 words whose last one is their label."""
    source = random.Random(seed)
    labels = [("bad", "good")[row % 2] for row in range(rows)]
    words = [word for word in tiny.WORDS if word not in labels]
    return [" ".join([*source.choices(words, k=40), label]) for label in labels], labels


@pytest.mark.end_to_end
@pytest.mark.parametrize("long_text", ["truncate", "head_and_tail", "windows"])
def test_an_answer_at_the_end_of_a_text_is_learned_by_what_reads_it(long_text):
    settings = {"window_pooling": "max"} if long_text == "windows" else {}
    model = tiny_objects.classifier(long_text=long_text, max_length=LENGTH, **settings)
    keras.utils.set_random_seed(0)
    x, y = made_task(128, seed=0)
    model.fit(x, y, batch_size=16, epochs=12, learning_rate=0.01, verbose=0)
    accuracy = model.evaluate(*made_task(64, seed=1), verbose=0)["accuracy"]
    # If all 64 answers are guesses, 69 % of them or more are right in one of a thousand cases.
    assert accuracy < 0.7 if long_text == "truncate" else accuracy > 0.95


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "name",
    [*ALIKE, *(pytest.param(each, marks=pytest.mark.slow) for each in MODELS if each not in ALIKE)],
)
def test_all_ways_of_asking_agree(name, tmp_path):
    make, x = MODELS[name]
    model = make()
    expected = model.predict(x, verbose=0)
    if name == "pairs":
        model.save_checkpoint(tmp_path / "theirs", "huggingface")
    model.save(tmp_path / "model.keras")
    model.save_checkpoint(tmp_path / "ours")
    model.export(tmp_path / "exported")
    model.export(tmp_path / "frozen", freeze=True)
    if name == "attention" and not ends_in_bfloat16():
        model.export(tmp_path / "half", precision="bfloat16")
        found = bert_tf.load(tmp_path / "half").predict(x, verbose=0)
        np.testing.assert_allclose(flat(found), flat(expected), atol=0.02)
        shutil.rmtree(tmp_path / "half")
    for path in tmp_path.iterdir():
        opened = bert_tf.load(path)
        found = opened.predict(x, verbose=0)
        np.testing.assert_allclose(flat(found), flat(expected), atol=1e-5, err_msg=str(path))
        if path.name not in ("exported", "frozen"):
            assert long_texts.settings_of(opened) == long_texts.settings_of(model)
    # Rows alone, rows as ids, and rows of a dataset.
    columns = x if isinstance(x, tuple) else (x,)
    for row in range(len(TEXTS)):
        one = tuple(column[row] for column in columns)
        alone = model.predict(one if len(one) > 1 else one[0], verbose=0)
        np.testing.assert_allclose(flat(alone), flat(expected[row]), atol=1e-5)
    rows = rows_of(model, x)
    if name == "vectors":
        texts = model.encode((tf.constant(x),))[0]
        outputs = model(texts).numpy()[:, 0]
        np.testing.assert_allclose(outputs, expected, atol=1e-5)
        ids = model.examples(rows).take(np.arange(5))[0]
        np.testing.assert_allclose(model(ids).numpy()[:, 1], expected, atol=1e-5)
        return
    targets = {"ranking": [tuple(0.0 for _ in group) for group in GROUPS], "pairs": [1.0] * 5}
    targets |= {"numbers": [(1.0, 2.0)] * 5, "labels": [["bad"]] * 5, "attention": ["bad"] * 5}
    ids = model.examples(Columns(rows.names, rows.values, targets[name])).take(np.arange(5))[0]
    scores = model.infer(rows)
    scores = scores.logits if name == "labels" else scores
    for row, each in enumerate(scores):
        of_ids = np.atleast_1d(model(ids).numpy()[row])[: np.size(each)]
        np.testing.assert_allclose(of_ids, np.atleast_1d(each), atol=1e-5)


@pytest.mark.end_to_end
def test_the_command_line_answers_alike(tmp_path, capsys):
    model = classifier(max_windows=3)
    model.save(tmp_path / "model.keras")
    write_lines(tmp_path / "texts.txt", TEXTS[:2])
    command = ["predict", str(tmp_path / "model.keras"), "--input", str(tmp_path / "texts.txt")]
    assert main(command) == 0
    said = capsys.readouterr()
    found = [json.loads(line) for line in said.out.splitlines()]
    answers = [each["probabilities"] for each in model.predict(TEXTS[:2], verbose=0)]
    assert sorted(flat(found)) == pytest.approx(sorted(flat(answers)), abs=1e-5)
    assert "1 of 2 inputs have more than 3 windows (max_windows); the ends of" in said.err


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("pooling", "pair"),
    [
        ("mean", True),
        ("attention", False),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("mean", False), ("max", False), ("max", True), ("attention", True))
        ),
    ],
)
def test_a_text_that_fits_is_answered_as_without_windows(pooling, pair):
    plain = tiny_objects.classifier(labels=["bad", "good"], max_length=LENGTH, pair=pair)
    model = classifier(window_pooling=pooling, pair=pair)
    weights = weight_names(model)
    for name, weight in weight_names(plain).items():
        weights[name].assign(weight)
    x = (["cat " * 9, "cat"], ["dog " * 4, "dog " * 12]) if pair else ["cat " * 14, "", "dog"]
    np.testing.assert_allclose(flat(model.predict(x)), flat(plain.predict(x)), atol=1e-6)


def test_the_mean_of_windows_of_an_embedder_is_that_of_all_their_tokens():
    model = tiny_objects.embedder(**WINDOWS)
    windows = long_texts.reader(model)([tf.constant(TEXTS[:1])])
    assert windows.counts.numpy().tolist() == [7]
    mask = windows.features["input_mask"].numpy()[..., None]
    tokens = model.encoder(windows.features)["sequence_output"].numpy()
    expected = (tokens * mask).sum(axis=(0, 1)) / mask.sum()
    np.testing.assert_allclose(model.predict(TEXTS[0]), expected, atol=1e-6)


def test_a_passage_has_the_score_of_its_best_window():
    model = reranker(max_length=10, stride=3)
    words = random.Random(0).choices(tiny.WORDS, k=13)
    # [CLS] cat [SEP] six pieces [SEP]
    windows = [" ".join(words[start : start + 6]) for start in (0, 3, 6, 9)]
    whole = model.predict("cat", [" ".join(words)])["scores"][0]
    each = model.predict("cat", windows)["scores"]
    assert np.ptp(each) > 1e-4
    np.testing.assert_allclose(whole, max(each), atol=1e-6)


def test_the_first_text_stands_in_each_window_and_has_half_of_it():
    reader = TextReader(tiny.tokenizer(), max_length=9, stride=2)
    ids = {word: number for number, word in enumerate(tiny.VOCABULARY)}
    cat, dog, sea = (ids[word] for word in ("cat", "dog", "sea"))
    found = reader([tf.constant(["cat " * 5, "cat " * 4]), tf.constant(["dog dog dog sea", "dog"])])
    assert found.features["input_word_ids"].numpy().tolist() == [
        [2, cat, cat, cat, 3, dog, dog, dog, 3],
        [2, cat, cat, cat, 3, dog, sea, 3, 0],
        [2, cat, cat, cat, cat, 3, dog, 3, 0],
    ]
    assert found.counts.numpy().tolist() == [2, 1]


def test_what_lies_beyond_the_most_windows_is_counted_and_has_no_effect(capsys):
    model = classifier(max_windows=2)
    read = LENGTH - 2 + STRIDE
    first, second = model.predict(["cat " * read, "cat " * read + "dog sea"], verbose=0)
    assert flat(first) == pytest.approx(flat(second), abs=1e-6)
    said = "1 of 2 inputs have more than 2 windows (max_windows); the ends of their texts are not"
    assert said in capsys.readouterr().err
    assert classifier().count_cut([TEXTS])[0] == 0
    # Seven pieces of the first text, six of the second in each window.
    pairs = classifier(pair=True, max_windows=2)
    assert (
        pairs.count_cut([["cat " * 8, "cat " * 7, "cat "], ["dog " * 8, "dog " * 12, "a"]])[0] == 1
    )
    assert pairs.count_cut([["cat " * 7], ["dog " * 13]])[0] == 1


@pytest.mark.parametrize(
    ("settings", "cuts"),
    [({}, False), ({"max_windows": 2}, True), ({"pair": True}, True)],
)
def test_an_export_says_whether_it_leaves_out_a_part_of_a_long_text(settings, cuts):
    record = record_of(classifier(**settings), [LENGTH], "strings", "float32")
    assert record.cuts is cuts
    assert record.may_cut([["cat " * 99]] * (1 + settings.get("pair", False))) is cuts


@pytest.mark.end_to_end
@pytest.mark.parametrize("inputs", [pytest.param("ids", marks=pytest.mark.slow), "strings"])
def test_head_and_tail_reads_both_ends_everywhere(tmp_path, capsys, inputs):
    model = tiny_objects.classifier(
        long_text="head_and_tail", labels=["bad", "good"], max_length=10
    )
    words = random.Random(0).choices(tiny.WORDS, k=30)
    # Of eight pieces, a quarter are the first.
    ends = model.predict(" ".join([*words[:2], *words[-6:]]))
    capsys.readouterr()
    found = model.predict(" ".join(words), verbose=0)
    assert "1 of 1 inputs have more than 10 tokens (max_length); the middles of" in (
        capsys.readouterr().err
    )
    assert flat(found) == pytest.approx(flat(ends), abs=1e-6)
    model.export(tmp_path / "model.tflite", format="litert", inputs=inputs)
    model.export(tmp_path / "exported")
    for name in ("model.tflite", "exported"):
        found = bert_tf.load(tmp_path / name).predict(" ".join(words))
        assert flat(found) == pytest.approx(flat(ends), abs=1e-5), name


def test_memory_is_bounded_by_chunks_of_windows():
    model, seen = classifier(), []

    class Watched:
        """A network that notes how many windows it is given at a time."""

        reads_rows = False

        def function(self, compute):
            def watched(inputs):
                if isinstance(inputs, dict) and "input_mask" in inputs:
                    rows = tf.shape(inputs["input_mask"])[0]
                    tf.py_function(lambda count: seen.append(int(count)), [rows], [])
                return compute(inputs)

            return watched

        def __getattr__(self, name):
            return getattr(model, name)

    model.with_network(Watched()).predict(["cat " * 20_000, "dog"], verbose=0)
    assert sum(seen) == 3_332 + 1 and max(seen) * LENGTH <= 2**14


@pytest.mark.end_to_end
def test_a_student_learns_from_a_teacher_that_reads_windows():
    teacher = classifier(window_pooling="attention")
    student = teacher.student(1)
    assert student.settings == teacher.settings
    x, _ = made_task(8, seed=0)
    assert np.isfinite(student.fit(x, teacher=teacher, verbose=0).history["loss"]).all()
    with pytest.raises(UserError, match="the loss hidden is not for models that read windows"):
        student.fit(x, teacher=teacher, verbose=0, distillation={"hidden": 1.0})
    with pytest.raises(UserError, match="must have the same long_text and max_length"):
        classifier(max_length=20).fit(x, teacher=teacher, verbose=0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_length": 40}, "max_length 40 is longer than the model's 32 positions"),
        ({"stride": 14}, "stride is 14, but a window of max_length 16 has 14 pieces"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"max_windows": 0}, "max_windows must be at least 1"),
        (
            {"long_text": "middle"},
            "long_text must be .truncate., .head_and_tail. or .windows.",
        ),
        ({"window_pooling": "sum"}, "window_pooling must be 'mean', 'max' or 'attention', got"),
        ({"long_text": "truncate"}, "stride is for windows; set long_text to 'windows', or"),
        (
            {"long_text": "head_and_tail", "stride": None, "window_pooling": "max"},
            "window_pooling is for windows",
        ),
    ],
)
@pytest.mark.parametrize("make", [classifier, embedder])
def test_bad_settings_are_refused_in_one_sentence(make, settings, said):
    with pytest.raises(UserError, match=said) as caught:
        make(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "name",
    ["ranking", *(pytest.param(each, marks=pytest.mark.slow) for each in ("attention", "pairs"))],
)
def test_a_litert_file_reads_a_fixed_number_of_windows(name, tmp_path):
    make, x = MODELS[name]
    model, path = make(max_windows=3), tmp_path / "model.tflite"
    model.export(path, format="litert")
    opened = bert_tf.load(path)
    assert opened.settings == model.settings
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(flat(opened.predict(x, verbose=0)), flat(expected), atol=1e-5)
    assert b"up to 3 windows of 16 tokens, end to end" in path.read_bytes()
    short = tmp_path / "short.tflite"
    # In a file of two windows, a model of any number of windows becomes one of two.
    model.export(short, format="litert", lengths=[32], precision="float16")
    assert bert_tf.load(short).settings == {**model.settings, "max_windows": 2}
    expected = make(max_windows=2).predict(x, verbose=0)
    found = bert_tf.load(short).predict(x, verbose=0)
    np.testing.assert_allclose(flat(found), flat(expected), atol=0.01)


def test_a_litert_file_of_other_windows_is_refused(tmp_path):
    for settings, options, message in (
        (
            {},
            {},
            r"load the model with one, as in TextClassifier.from_checkpoint\(…, max_windows=8",
        ),
        ({"max_windows": 3}, {"inputs": "strings"}, "that takes strings reads no windows"),
        ({"max_windows": 3}, {"lengths": [40]}, "40; a row of this model is 1 to 3 windows .* 16"),
        ({"max_windows": 3}, {"lengths": [64]}, "64; a row of this model is 1 to 3 windows .* 16"),
    ):
        with pytest.raises(UserError, match=message):
            classifier(**settings).export(tmp_path / "m.tflite", format="litert", **options)


@pytest.mark.end_to_end
def test_a_run_reads_windows_and_a_later_one_starts_from_it(tmp_path, capsys):
    for split, rows in (("train", 32), ("dev", 8)):
        pairs = zip(*made_task(rows, seed=rows), strict=True)
        write_lines(tmp_path / f"{split}.tsv", ["text\tlabel", *map("\t".join, pairs)])
    config = write_config(tmp_path, "classification", "path: ., format: tsv", epochs=1)

    def run(name, *changes):
        given = [f"--set={each}" for each in ("train.max_length=16", *changes)]
        code = main(["finetune", str(config), "--out", str(tmp_path / name), *given])
        return code, capsys.readouterr().err

    windows = ("model.long_text=windows", "model.window_pooling=attention", "model.max_windows=4")
    code, said = run("first", *windows)
    assert code == 0 and "32 of 32 inputs have more than 4 windows (max_windows)" in said
    first = bert_tf.load(tmp_path / "first")
    assert first.settings == {
        **{"pair": False, "max_length": 16, "long_text": "windows"},
        **{"window_pooling": "attention", "max_windows": 4},
    }
    start = f"init.checkpoint={tmp_path / 'first'}"
    sizes = re.findall(r"\w+(?=:)", tiny.MODEL.partition("{")[2])
    assert run("second", start, *(f"model.{size}=null" for size in sizes))[0] == 0
    assert bert_tf.load(tmp_path / "second").settings == first.settings
    code, said = run("third", start, "model.long_text=truncate")
    assert code == 0 and "ignored: window_attention" in said
    for change, sentence in (
        ("model.stride=4", "stride is for windows; set long_text to 'windows', or"),
        ("model.long_text=middle", "model.long_text must be"),
    ):
        code, said = run("none", change)
        assert code == 2 and sentence in said


def test_a_checkpoint_that_reads_windows_may_be_opened_otherwise(tmp_path, capsys):
    classifier(window_pooling="attention").save_checkpoint(tmp_path / "model")
    assert capsys.readouterr().err == ""
    classifier().save_checkpoint(tmp_path / "theirs", "huggingface")
    said = "transformers does not know long_text windows; only bert_tf does"
    assert said in capsys.readouterr().err
    with pytest.raises(UserError, match="reads windows, and a page shows one input"):
        Subject.load(tmp_path / "model")
    model = bert_tf.load(tmp_path / "model", long_text="head_and_tail")
    assert model.settings["long_text"] == "head_and_tail" and model.stride is None
    plain = tiny_objects.classifier(labels=["bad", "good"], max_length=LENGTH)
    plain.save_checkpoint(tmp_path / "plain")
    assert bert_tf.load(tmp_path / "plain", long_text="windows").long_text == "windows"
    settings = {"long_text": "windows", "window_pooling": "attention"}
    with pytest.raises(UserError, match="lacks the weights window_attention"):
        bert_tf.load(tmp_path / "plain", **settings)
    tuned = bert_tf.TextClassifier.from_checkpoint(tmp_path / "plain", multi_label=True, **settings)
    assert tuned.window_attention.kernel.shape == (16, 1)
