"""What pieces of a domain give a checkpoint: its own vocabulary compared with the extended one.

    python -m benchmarks.domain_vocabulary --checkpoint FOLDER --novels FOLDER --out DIR

The domain is a folder of novels, one file a book. The last tenth of each book is held out. A
model with each vocabulary trains on the same passages for the same number of updates, from the same
checkpoint and with the same settings. If the checkpoint has no masked-LM head, the model gets a new
one. Then three figures are measured on the held-out tenths:

- pieces per word;
- masked-LM perplexity per word: in passages, 15 % of the words are hidden with all of their pieces,
  the same words for both vocabularies. The perplexity is exp(the sum of the hidden
  pieces' negative log probabilities / the number of hidden words). The model sees how
  many pieces a hidden word has, which helps the vocabulary that splits words into more pieces;
- the accuracy of a classifier that names the book of a passage, fine-tuned from the trained model.

The results are written to DIR/results.json after each step. No times are measured.
"""

import argparse
import json
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.arguments import existing
from bert_tf.cli import command
from bert_tf.io.atomic import write_text

_HIDDEN = 0.15
_EVALUATED_ROWS = 16


def passages(text: str, words: int) -> list[str]:
    """The text, cut into passages of `words` words.

    >>> passages("the cat sat. it ran", 2)
    ['the cat', 'sat. it']
    """
    every = text.split()
    return [" ".join(every[i : i + words]) for i in range(0, len(every) - words + 1, words)]


def columns(rows: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The texts and the labels of rows."""
    return [text for text, _ in rows], [label for _, label in rows]


def perplexity_per_word(model, texts: Sequence[str]) -> float:
    """The perplexity of hidden words of the texts, each hidden with all of its pieces."""
    source, tokenizer = random.Random(0), model.tokenizer
    rows, targets = [], []
    for text in texts:
        words = re.findall(r"\w+|[^\w\s]", text)
        pieces = tokenizer.tokenize(words).to_list()
        spoken = [i for i, word in enumerate(words) if word[0].isalpha()]
        hidden = {*source.sample(spoken, max(1, round(_HIDDEN * len(spoken))))}
        ids, places, wanted = [tokenizer.cls_id], [], []
        for number, each in enumerate(pieces):
            if number in hidden:
                places += range(len(ids), len(ids) + len(each))
                wanted += each
            ids += [tokenizer.mask_id] * len(each) if number in hidden else each
        rows.append((ids + [tokenizer.sep_id], places))
        targets.append((wanted, len(hidden)))
    loss = 0.0
    for start in range(0, len(rows), _EVALUATED_ROWS):
        batch = rows[start : start + _EVALUATED_ROWS]
        longest, most = (max(len(row[part]) for row in batch) for part in (0, 1))
        ids = np.array([row + [tokenizer.pad_id] * (longest - len(row)) for row, _ in batch])
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row, _ in batch])
        places = np.array([each + [0] * (most - len(each)) for _, each in batch])
        inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": 0 * ids}
        logits = np.asarray(model({**inputs, "masked_lm_positions": places}), np.float64)
        logits = logits.reshape(*places.shape, -1)
        for row, (wanted, _) in zip(logits, targets[start:], strict=False):
            row = row[: len(wanted)]
            total = np.log(np.exp(row - row.max(-1, keepdims=True)).sum(-1)) + row.max(-1)
            loss += float((total - row[np.arange(len(wanted)), wanted]).sum())
    return float(np.exp(loss / sum(words for _, words in targets)))


def measure(arguments: argparse.Namespace) -> None:
    """Trains and measures with both vocabularies, and writes the results."""
    import keras

    import bert_tf
    from bert_tf.runs.extending import extend

    books = {
        file.stem: file.read_text(encoding="utf-8") for file in sorted(arguments.novels.iterdir())
    }
    cut = {name: passages(text, arguments.words) for name, text in books.items()}
    train = {name: each[: len(each) * 9 // 10] for name, each in cut.items()}
    held_out = {name: each[len(each) * 9 // 10 :] for name, each in cut.items()}

    def drawn(parts: dict[str, list[str]], number: int) -> list[tuple[str, str]]:
        """`number` passages with the names of their books, equally many of each book."""
        source = random.Random(1)
        each = -(-number // len(parts))
        rows = [(text, name) for name in parts for text in source.sample(parts[name], each)]
        source.shuffle(rows)
        return rows[:number]

    arguments.out.mkdir(parents=True, exist_ok=True)
    corpus, extended = arguments.out / "train.txt", arguments.out / "extended"
    corpus.write_text("\n".join(text for each in train.values() for text in each), encoding="utf-8")
    shutil.rmtree(extended, ignore_errors=True)
    tokenizer = bert_tf.Tokenizer.from_checkpoint(arguments.checkpoint)
    learned = extend(
        arguments.checkpoint, [corpus], tokenizer.vocab_size + arguments.pieces, extended
    )
    unseen = [text for each in held_out.values() for text in each]
    words = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in unseen)
    updates = [text for text, _ in drawn(train, arguments.updates * 32)]
    labelled, asked = drawn(train, arguments.rows), drawn(held_out, arguments.rows)
    results: dict[str, object] = {
        "pieces": arguments.pieces,
        "updates": arguments.updates,
        "rows": arguments.rows,
        "train_pieces_per_word": [learned.before.pieces_per_word, learned.pieces_per_word],
    }
    for name, source in (("old", arguments.checkpoint), ("extended", extended)):
        keras.utils.set_random_seed(0)
        model = bert_tf.MaskedLM.from_checkpoint(source, max_length=128)
        pieces = sum(len(row) for row in model.tokenizer.tokenize(unseen).to_list())
        found = {"vocabulary": model.tokenizer.vocab_size, "pieces_per_word": pieces / words}
        results[name] = found
        model.fit(updates, epochs=1, learning_rate=arguments.learning_rate, verbose=0)
        found["perplexity_per_word"] = perplexity_per_word(model, [text for text, _ in asked])
        write_text(arguments.out / "results.json", json.dumps(results, indent=2) + "\n")
        shutil.rmtree(scratch := arguments.out / f"trained_{name}", ignore_errors=True)
        model.save_checkpoint(scratch)
        found["accuracy"] = []
        for seed in arguments.seeds:
            score = classifier_accuracy(scratch, seed, labelled, asked, arguments)
            found["accuracy"].append(score)
            write_text(arguments.out / "results.json", json.dumps(results, indent=2) + "\n")
    print((arguments.out / "results.json").read_text())


def classifier_accuracy(
    checkpoint: Path,
    seed: int,
    train: Sequence[tuple[str, str]],
    dev: Sequence[tuple[str, str]],
    arguments: argparse.Namespace,
) -> float:
    """The accuracy on `dev` of a classifier that starts from the checkpoint and learns `train`."""
    import keras

    import bert_tf

    keras.utils.set_random_seed(seed)
    clf = bert_tf.TextClassifier.from_checkpoint(checkpoint)
    rate = arguments.classifier_learning_rate
    clf.fit(*columns(train), epochs=arguments.epochs, learning_rate=rate, verbose=0)
    return float(clf.evaluate(*columns(dev), verbose=0)["accuracy"])


def parser_on_novels(module: str, doc: str, seeds: Sequence[int]) -> argparse.ArgumentParser:
    """The options of benchmarks that fine-tune classifiers which name the book of a passage."""
    parser = command.module_parser(module, doc)
    parser.add_argument("--checkpoint", type=existing, required=True)
    parser.add_argument("--novels", type=existing, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--words", type=int, default=48, help="words of a passage")
    parser.add_argument("--rows", type=int, default=880, help="passages to train and to ask")
    parser.add_argument("--epochs", type=int, default=10, help="of the classifiers")
    parser.add_argument("--classifier-learning-rate", type=float, default=1e-4)
    parser.add_argument("--seeds", type=int, nargs="*", default=seeds, help="of the classifiers")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = parser_on_novels("benchmarks.domain_vocabulary", __doc__ or "", [0, 1])
    parser.add_argument("--pieces", type=int, default=2000, help="new pieces")
    parser.add_argument("--updates", type=int, default=150, help="of 32 passages each")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    return command.run("domain_vocabulary", parser, argv, measure, "stopped")


if __name__ == "__main__":
    raise SystemExit(main())
