"""The command line: help that answers at once, mistakes in one line with code 2, interruptions."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
import tensorflow as tf

import bert_tf
from bert_tf.cli.parser import main, make_parser
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.export import __main__ as export_command

ROOT = Path(__file__).resolve().parents[2]
METRICS = {"accuracy": 0.75, "loss": 0.5}
# What makes a pre-training of the configuration that the tests have.
PRETRAINING = ["task=pretraining", "data.format=sentence_per_line"]
COMMANDS = "demo vocab pretrain-data pretrain adapt finetune check evaluate predict".split()
COMMANDS += "embed mine export serve shrink convert push report inspect schema".split()


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def config_file(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(
        "task: classification\n"
        "data: {path: data, format: tsv}\n"
        "tokenizer: {vocab: vocab.txt}\n"
        "model: {preset: bert-tiny-uncased}\n"
        "train: {epochs: 1}\n"
    )
    return str(file)


@pytest.fixture
def training(monkeypatch):
    """Stands for bert_tf.runs: notes its calls, or raises what is put into `error`."""

    def note(name):
        def called(*arguments):
            if fake.error:
                raise fake.error
            fake.calls.append((name, *arguments))
            logger.info("half of it is done")
            logger.warning("half of it is missing")
            return METRICS

        return called

    fake = types.SimpleNamespace(calls=[], error=None)
    for name in ("pretrain", "finetune", "evaluate"):
        setattr(fake, name, note(name))
    monkeypatch.setitem(sys.modules, "bert_tf.runs", fake)
    monkeypatch.setattr(bert_tf, "runs", fake, raising=False)
    return fake


def one_line_of_error(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("bert-tf: error: ")
    return captured.err.removeprefix("bert-tf: error: ")


def test_help_and_mistakes_answer_without_tensorflow_and_programs():
    script = (
        "import sys; sys.argv = ['bert-tf']\n"
        "import bert_tf.cli.parser\n"
        "try: bert_tf.cli.parser.main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert bert_tf.cli.parser.main(['finetune', 'missing.yaml', '--out', 'run']) == 2\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'bert_tf.experiments'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = python("-c", script)

    assert done.returncode == 0, done.stderr
    assert "bert-tf demo" in done.stdout


def test_the_examples_of_every_help_are_commands():
    parser = make_parser()
    (commands,) = (each for each in parser._actions if isinstance(each.choices, dict))
    lines = [
        line.partition(" | ")[0]
        for each in (parser, *commands.choices.values())
        for line in each.epilog.splitlines()
        if line.startswith("  bert-tf ")
    ]
    assert len(lines) > 2 * len(COMMANDS)
    for line in lines:
        parser.parse_args(shlex.split(line)[1:])


def test_a_module_run_with_a_mistake_exits_with_2_and_one_line():
    done = python("-m", "bert_tf", "finetune", "missing.yaml", "--out", "run")

    assert done.returncode == 2
    assert done.stderr == (
        "bert-tf: error: configuration file not found: missing.yaml is neither a file nor an "
        "experiment's name; give a path, or a name such as glue/cola\n"
    )


def test_another_keras_backend_is_refused_by_every_command():
    done = python("-m", "bert_tf", "demo", KERAS_BACKEND="jax")

    assert done.returncode == 2
    assert re.fullmatch(r"bert-tf: error: .* Keras is set to jax; set KERAS_B.*\n", done.stderr)


def shown_by(capsys, *arguments):
    """What a command that ends in the parser prints."""
    with pytest.raises(SystemExit) as stopped:
        main([*arguments])
    assert stopped.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_by_examples(capsys, command):
    shown = shown_by(capsys, command, "--help").replace(f"{command}\n", f"{command} \n")
    assert f"examples:\n  bert-tf {command} " in shown


@pytest.mark.parametrize("arguments", [[], ["finetune"]])
def test_the_help_lists_the_exit_codes(capsys, arguments):
    _, codes = shown_by(capsys, *arguments, "--help").split("exit codes:\n")
    assert re.findall(r"^  (\d+) ", codes, re.MULTILINE) == ["0", "2", "130", "143"]


def test_the_help_names_every_command_and_the_version_is_printed(capsys):
    shown = shown_by(capsys, "--help")
    assert re.findall(r"^    (\S+)", shown, re.MULTILINE) == COMMANDS
    assert shown_by(capsys, "--version") == f"bert-tf {bert_tf.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: COMMAND; see bert-tf --help"),
        (["finetun"], "invalid choice: 'finetun'"),
        (["finetune"], "required: CONFIG.yaml, --out; see bert-tf finetune --help"),
        (["finetune", "a.yaml", "--ou", "run"], "required: --out"),
        (
            ["vocab", "--input", "a", "--size", "many", "--out", "v"],
            "invalid integer value: 'many'",
        ),
        (["evaluate", "run", "extra"], "unrecognized arguments: extra"),
        (["convert", "a", "b", "--to", "onnx"], "invalid choice: 'onnx'"),
        (["convert", "a", "b"], "required: --to; see bert-tf convert --help"),
        (["predict", "model", "--signature", "a", "b", "-c"], "unrecognized arguments: b -c"),
        (["export", "run"], "required: --out; see bert-tf export --help"),
        (["export", "run", "--out", "model", "--kind", "a"], "invalid choice: 'a'"),
        (["predict", "model"], "requires either texts or --input FILE"),
        (["predict", "model", "text", "--input", "a"], "requires either texts or --input FILE"),
        (["vocab", "--input", "a", "--size", "9", "--out", __file__ + "/v"], "cannot write"),
    ],
)
def test_a_mistake_is_reported_in_one_line(capsys, arguments, told):
    assert main(arguments) == 2
    assert told in one_line_of_error(capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["model", "a", "b", "--signature", "words"],
        ["model", "--signature", "words", "a", "b"],
        ["--signature", "words", "model", "a", "b"],
        ["model", "a", "--signature", "words", "b"],
    ],
)
def test_texts_to_ask_about_may_stand_anywhere(monkeypatch, arguments):
    asked = []
    monkeypatch.setattr("bert_tf.asking.predict.run", lambda *given: asked.append(given))
    assert main(["predict", *arguments, "--min-score", "0.5"]) == 0
    assert asked == [("model", ["a", "b"], None, None, "words", {"min_score": 0.5})]


@pytest.mark.parametrize(
    "arguments", [["a", "b", "--to", "tf1"], ["--to", "tf1", "a", "b"], ["a", "--to", "tf1", "b"]]
)
def test_the_destination_of_convert_may_stand_anywhere(arguments):
    found = make_parser().parse_args(["convert", *arguments])
    assert (found.source, found.destination, found.to) == ("a", "b", "tf1")


@pytest.mark.parametrize(
    ("command", "task", "other"),
    [
        ("pretrain", "classification", "finetune"),
        ("pretrain-data", "classification", "finetune"),
        ("finetune", "pretraining", "pretrain"),
    ],
)
def test_a_configuration_of_another_task_is_reported(capsys, config_file, command, task, other):
    assert main([command, config_file, "--out", "run", "--set", f"task={task}"]) == 2
    told = f"bert-tf {command} cannot run task {task}; use bert-tf {other}\n"
    assert one_line_of_error(capsys).endswith(told)


def test_settings_reach_the_run_given_together_or_one_by_one(training, config_file):
    arguments = ["finetune", config_file, "--out", "run", "--set", "train.seed=1"]

    assert main([*arguments, "train.batch_size=2", "--set", "train.max_length=9"]) == 0

    (name, config, out) = training.calls.pop()
    assert (name, out) == ("finetune", "run")
    assert (config.train.seed, config.train.batch_size, config.train.max_length) == (1, 2, 9)


def test_workers_are_passed_to_tensorflow(training, config_file, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")
    arguments = ["finetune", config_file, "--out", "run", "--set", "train.strategy=multi_worker"]

    assert main([*arguments, "--workers", "one:1", "other:2", "--worker", "1"]) == 0
    assert json.loads(os.environ["TF_CONFIG"]) == {
        "cluster": {"worker": ["one:1", "other:2"]},
        "task": {"type": "worker", "index": 1},
    }


MULTI_WORKER = "train.strategy=multi_worker"
TOGETHER = "--workers and --worker must be given together; add the missing one"
NO_WORKERS = f"--workers requires train.strategy multi_worker; add --set {MULTI_WORKER}"


@pytest.mark.parametrize(
    ("setting", "arguments", "told"),
    [
        (MULTI_WORKER, ["--worker", "0"], TOGETHER),
        (MULTI_WORKER, ["--workers", "one:1"], TOGETHER),
        (
            MULTI_WORKER,
            ["--workers", "one:1", "--worker", "1"],
            "--worker is 1, but --workers has 1 entries; give a number from 0 to 0",
        ),
        ("task=classification", ["--workers", "one:1", "other:2", "--worker", "1"], NO_WORKERS),
        ("train.strategy=mirrored", ["--workers", "one:1", "--worker", "0"], NO_WORKERS),
    ],
)
def test_unsuitable_workers_are_refused(capsys, training, config_file, setting, arguments, told):
    assert main(["finetune", config_file, "--out", "run", "--set", setting, *arguments]) == 2
    assert one_line_of_error(capsys) == f"{told}\n"


def test_evaluation_is_given_the_run_and_the_data(training):
    assert main(["evaluate", "run"]) == 0
    assert main(["evaluate", "run", "--data", "unseen.tsv", "--confidence", "0.9"]) == 0
    others = ("evaluate", "run", "unseen.tsv", 0.9)
    assert training.calls == [("evaluate", "run", None, None), others]


@pytest.mark.parametrize("command", ["pretrain", "finetune", "evaluate"])
def test_a_script_reads_the_metrics_from_standard_output(capsys, training, config_file, command):
    arguments = {
        "pretrain": [config_file, "--out", "run", "--set", *PRETRAINING],
        "finetune": [config_file, "--out", "run"],
        "evaluate": ["run"],
    }
    assert main([command, *arguments[command]]) == 0

    told = capsys.readouterr()
    assert json.loads(told.out) == METRICS
    assert told.err == "half of it is done\nwarning: half of it is missing\n"


@pytest.mark.parametrize(
    "arguments",
    [["--quiet", "evaluate", "run"], ["evaluate", "--quiet", "run"], ["evaluate", "run", "-q"]],
)
def test_quiet_leaves_results_and_warnings_of_one_command(capsys, training, arguments):
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == METRICS
    assert told.err == "warning: half of it is missing\n"

    assert main(["evaluate", "run"]) == 0
    assert "half of it is done" in capsys.readouterr().err


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UserError("run/vocab.txt is empty\nreally"), "run/vocab.txt is empty really\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "the disk is full; free some space"),
        (
            PermissionError(errno.EACCES, os.strerror(errno.EACCES), "run/logs"),
            "the system refused to open a file ([Errno 13] Permission denied: 'run/logs'); correct",
        ),
        (
            tf.errors.PermissionDeniedError(None, None, "run/logs; Permission denied"),
            "the system refused to open a file (run/logs; Permission denied); correct",
        ),
        (
            tf.errors.FailedPreconditionError(None, None, "run/logs is not a directory"),
            "the system refused to open a file (run/logs is not a directory); correct",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
            "No usable temporary directory found in ['/tmp']; set TMPDIR to a folder",
        ),
        (MemoryError(), "out of memory; lower train.batch_size"),
        (
            tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"),
            "out of memory; lower train.batch_size",
        ),
    ],
)
def test_a_mistake_found_at_run_time_is_reported_in_one_line(capsys, training, quiet, error, told):
    training.error = error
    assert main([*quiet, "evaluate", "run"]) == 2
    assert one_line_of_error(capsys).startswith(told)


def test_a_bug_is_not_hidden(training):
    training.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        main(["evaluate", "run"])


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_interruption_says_that_the_run_can_go_on(capsys, training, quiet):
    training.error = KeyboardInterrupt()
    assert main([*quiet, "evaluate", "run"]) == 130
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "run the same command again" in told


@pytest.mark.parametrize(
    "command",
    [
        "vocab --input {file} --size 20 --out {file}",
        "vocab --input {other} {file} --size 20 --out {link}",
        "predict saved_model --input {file} --output {file}",
        "embed saved_model {file} --out {same}",
        "mine model --data {other} --corpus {file} --out {file}",
        "mine model --data {file} --out {same}",
    ],
)
def test_a_file_that_is_read_is_not_replaced(tmp_path, capsys, command):
    file, other, link = (tmp_path / name for name in ("texts.txt", "other.txt", "link.txt"))
    file.write_text("a cat sat\n")
    other.write_text("a dog ran\n")
    link.symlink_to(file)
    same = f"{tmp_path}/../{tmp_path.name}/texts.txt"
    given = command.format(file=file, other=other, link=link, same=same)
    assert main(shlex.split(given)) == 2
    assert "is an input that would be replaced; name another output" in capsys.readouterr().err
    assert file.read_text() == "a cat sat\n"


def test_a_number_of_more_than_64_bits_is_refused(capsys):
    assert main(["vocab", "--input", "x", "--out", "y", "--size", "9" * 20]) == 2
    assert "argument --size: 99999999999999999999 is too large" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_is_no_error():
    script = (
        "import sys, types, bert_tf.cli.parser\n"
        "def evaluate(*_):\n"
        "    while True: print('a line')\n"
        "sys.modules['bert_tf.runs'] = types.SimpleNamespace(evaluate=evaluate)\n"
        "sys.exit(bert_tf.cli.parser.main(['evaluate', 'run']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(timeout=60) == 0

    assert told == b""


@pytest.mark.end_to_end
@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_the_null_device(tmp_path, stream):
    (tmp_path / "text.txt").write_text("a cat sat\n" * 9)
    command = shlex.join([sys.executable, "-m", "bert_tf", "vocab", "--input", "text.txt"])
    done = subprocess.run(
        f"{command} --size 20 --out vocab.txt {stream}",
        shell=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "cat" in (tmp_path / "vocab.txt").read_text().split()


@pytest.mark.end_to_end
def test_a_vocabulary_is_learned_from_files_and_from_the_texts_of_a_corpus(tmp_path, capsys):
    text = "the lower the low, the lowest of the new and newer"
    (tmp_path / "text.txt").write_text(f"{text}\n" * 20)
    line = json.dumps({"id": "<no-word>", "text": text}) + "\n"
    (tmp_path / "text.jsonl").write_text(line * 20)
    options = ["--size", "60", "--out", str(tmp_path / "vocab.txt")]

    learned = []
    for more in (["text.txt"], ["t?xt.txt"], ["text.jsonl", "--format", "jsonl"]):
        assert main(["vocab", "--input", str(tmp_path / more[0]), *more[1:], *options]) == 0
        assert "pieces per word" in capsys.readouterr().out
        learned.append((tmp_path / "vocab.txt").read_text())
    assert {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"} <= {*learned[0].splitlines()}
    assert learned[0] == learned[1] == learned[2]

    capsys.readouterr()
    for more in (f"{tmp_path}/*.txt", str(tmp_path)):
        assert main(["vocab", "--input", more, *options]) == 2
        assert f"{tmp_path}/vocab.txt is an input that would be replaced" in one_line_of_error(
            capsys
        )
    for more in ([], ["--format", "jsonl"]):
        assert main(["vocab", "--input", str(tmp_path / "none"), *more, *options]) == 2
        assert "corpus not found: " in one_line_of_error(capsys)


def test_an_export_is_quiet_in_the_same_way(monkeypatch, capsys):
    calls = []

    def export_run(path, out, **options):
        calls.append((path, out, options))
        logger.info("it is written")

    monkeypatch.setitem(
        sys.modules, "bert_tf.export.run", types.SimpleNamespace(export_run=export_run)
    )
    given = ["run", "--out", "model", "--labels", "bad", "good", "--pair", "--max-length", "9"]
    for command in (export_command.main, lambda given: main(["export", *given])):
        assert command(given) == 0
        assert capsys.readouterr().err == "it is written\n"
        assert command([*given, "--quiet"]) == 0
        assert capsys.readouterr().err == ""
    run, out, options = calls[0]
    assert (run, out) == ("run", "model")
    assert (options["labels"], options["max_length"]) == (["bad", "good"], 9)
    assert options["pair"] and not options["unanswerable"] and not options["freeze"]
    assert calls == [calls[0]] * 4
