"""`bert-tf demo`: the whole way, from raw text to a SavedModel that answers strings.

The text is on every machine: the documentation strings of the standard library and of the
installed packages. The question put to the model is which library a passage is from.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bert_tf.console import logger, stages
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text

VOCABULARY_SIZE = 4000

# Small enough for minutes on two cores, large enough that pre-training shows. So short a training
# needs a louder signal than the paper's: more masked tokens (40%, Wettig et al. 2023), larger
# initial weights, no dropout, a high rate.
_PRETRAINING = """\
task: pretraining
data:
  path: data/prose.txt
  format: sentence_per_line
  dev_fraction: 0.02
  masked_lm_prob: 0.4
tokenizer: {vocab: vocab.txt}
model:
  hidden_size: 128
  num_hidden_layers: 2
  num_attention_heads: 2
  initializer_range: 0.06
  hidden_dropout_prob: 0.0
  attention_probs_dropout_prob: 0.0
train:
  steps: 3200
  batch_size: 32
  max_length: 64
  learning_rate: 1e-3
  checkpoint_steps: 800
"""
_FINETUNING = """\
task: classification
data: {path: data, format: tsv}
tokenizer: {vocab: vocab.txt}
model:
  hidden_size: 128
  num_hidden_layers: 2
  num_attention_heads: 2
  initializer_range: 0.06
  # Said, as a checkpoint's dropout would count otherwise.
  hidden_dropout_prob: 0.1
  attention_probs_dropout_prob: 0.1
train:
  epochs: 4
  batch_size: 32
  max_length: 96
  learning_rate: 3e-4
"""
_INIT = "init: {checkpoint: pretraining}\n"
_FINETUNINGS = {
    "finetuning": "Fine-tuning it to predict the library of a passage",
    "from_scratch": "The same from random weights, without pre-training",
}
# The program that asks the SavedModel; it is written into the demo's folder.
_ASK = '''\
"""python ask.py SAVED_MODEL TEXT ... : needs only tensorflow and tensorflow_text."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
answers = model.signatures["serving_default"](text=tf.constant(sys.argv[2:]))
for text, label, probabilities in zip(
    sys.argv[2:], answers["label"].numpy(), answers["probabilities"].numpy()
):
    print(f"{label.decode():>12}  {probabilities.max():4.0%}  {text[:80]}")
'''


def run(out: str | os.PathLike) -> None:
    """Does everything, in the folder `out`; what an earlier, interrupted demo did is kept.

    Raises:
        UserError: `out` cannot be written, or the disk is full.
    """
    began = time.monotonic()
    out = Path(out)
    data = _read_documentation(out / "data")
    _learn_vocabulary(out)
    write_text(out / "pretraining.yaml", _PRETRAINING)
    write_text(out / "finetuning.yaml", _FINETUNING + _INIT)
    write_text(out / "from_scratch.yaml", _FINETUNING)

    # TensorFlow starts here, after the work that does without it.
    from bert_tf import runs
    from bert_tf.config.reading import load_config_for
    from bert_tf.config.run import FinetuningRun, PretrainingRun

    _title("Pre-training BERT on the prose")
    config = load_config_for("pretrain", PretrainingRun, out / "pretraining.yaml")
    pretrained = runs.pretrain(config, out / "pretraining")
    for name, title in _FINETUNINGS.items():
        _title(title)
        trained = load_config_for("finetune", FinetuningRun, out / f"{name}.yaml")
        runs.finetune(trained, out / name)
    test = str(out / "data" / "test.tsv")
    scores = {name: runs.evaluate(out / name, test)["accuracy"] for name in _FINETUNINGS}
    _export(out)
    _ask(out)
    _export_for_phones(out)
    majority = data["splits"]["test"]["majority_share"]
    _summarize(out, pretrained, majority, scores, time.monotonic() - began)


def _read_documentation(folder: Path) -> dict:
    """Harvests the documentation strings, or reads what an earlier demo wrote."""
    import json

    manifest = folder / "manifest.json"
    if manifest.exists():
        return json.loads(manifest.read_text(encoding="utf-8"))
    from bert_tf.demo import docstrings, passages

    _title("Reading the documentation strings of the installed libraries")
    with stages() as progress:
        found = docstrings.harvest(on_progress=lambda done, of: progress("reading files", done, of))
    written = passages.write(passages.build(found), folder)
    prose = written["prose"]
    logger.info(f"{prose['words']:,} words of prose in {prose['documents']:,} documents")
    return written


def _learn_vocabulary(out: Path) -> None:
    if (out / "vocab.txt").exists():
        return
    from bert_tf.text.vocabulary_learning import coverage_report, learn_vocabulary

    _title(f"Learning a vocabulary of {VOCABULARY_SIZE:,} word pieces")
    with stages() as progress:
        learned = learn_vocabulary([out / "data" / "prose.txt"], VOCABULARY_SIZE, progress=progress)
    learned.write(out / "vocab.txt")
    logger.info(coverage_report(learned).rstrip())


def _export(out: Path) -> None:
    if (out / "saved_model").exists():
        return
    from bert_tf.export.run import export_run

    _title("Exporting a SavedModel")
    export_run(out / "finetuning", out / "saved_model")


def _export_for_phones(out: Path) -> None:
    if (out / "model.tflite").exists():
        return
    from bert_tf.export.run import export_run

    _title("Exporting a LiteRT file for phones, with weights of 8 bits")
    export_run(out / "finetuning", out / "model.tflite", format="litert", precision="int8")


def _ask(out: Path) -> None:
    """Puts held-out passages to the SavedModel in a process that knows nothing of bert_tf."""
    _title("Asking it, in a new process with only tensorflow and tensorflow_text")
    write_text(out / "ask.py", _ASK)
    lines = (out / "data" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:5]
    texts = [line.split("\t")[0] for line in lines]
    # -P: nothing is imported from the folder of the script.
    asked = subprocess.run([sys.executable, "-P", out / "ask.py", out / "saved_model", *texts])
    if asked.returncode:
        raise UserError(f"{out / 'ask.py'} failed; its output above says why")
    logger.info("right: " + ", ".join(line.split("\t")[1] for line in lines))


def _summarize(
    out: Path,
    pretrained: Mapping[str, float],
    majority: float,
    scores: Mapping[str, float],
    seconds: float,
) -> None:
    minutes, seconds = divmod(round(seconds), 60)
    print(f"""
Done in {minutes} min {seconds} s. Accuracy on held-out passages:

  always the most frequent library   {majority:6.1%}
  without pre-training               {scores["from_scratch"]:6.1%}
  with pre-training                  {scores["finetuning"]:6.1%}

Pre-training: masked words guessed {pretrained["masked_lm_accuracy"]:.1%}, \
next sentences recognized {pretrained["next_sentence_accuracy"]:.1%}.

  {out}/vocab.txt        the vocabulary
  {out}/pretraining      run folder of the pre-training: metrics, checkpoints, TensorBoard logs
  {out}/finetuning       run folder of the classifier
  {out}/saved_model      takes strings, returns labels
  {out}/model.tflite     the same for phones

Next:
  bert-tf predict {out}/saved_model "Return the mean of the array over an axis."
  tensorboard --logdir {out}
  bert-tf finetune {out}/finetuning.yaml --out runs/mine --set train.learning_rate=1e-4""")


def _title(text: str) -> None:
    logger.info(f"\n== {text}")
