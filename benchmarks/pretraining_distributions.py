"""What pre-training examples are like: ours compared with those of google-research's builder.

Both are made from the same text, one sentence a line and a blank line between documents, with the
same vocabulary (uncased) and the reference's defaults: 128 tokens, 20 predictions, 15% masked, 10%
of the documents cut short. Make the reference's examples first:

    python -m benchmarks.reference_builder PATH/TO/bert --input_file=text.txt \
        --vocab_file=vocab.txt --output_file=reference.tfrecord --dupe_factor=10
    python -m benchmarks.pretraining_distributions --text text.txt --vocab vocab.txt \
        --reference-records reference.tfrecord --dupe-factor 10

`--write-text WIKITEXT` makes such a text from a WikiText file first. Examples of one document are
alike (all are short, or none), so their number gives no standard error. The standard error is the
spread between our passes over the corpus, each made with a seed of its own.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.arguments import existing
from bert_tf.cli import command
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text

_MAX_LENGTH, _PREDICTIONS = 128, 20
_BATCH = 64

Batch = dict[str, np.ndarray]


def main() -> int:
    """Prints a table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.pretraining_distributions", __doc__)
    parser.add_argument("--text", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--write-text", type=existing, help="a WikiText file to make --text of")
    parser.add_argument("--vocab", type=existing, help="uncased vocabulary")
    parser.add_argument("--reference-records", type=existing, help="made by the reference of it")
    parser.add_argument("--dupe-factor", type=int, default=10, help="the reference's")
    parser.add_argument("--passes", type=int, default=20, help="passes of ours")
    parser.add_argument("--whole-words", action="store_true", help="both masked whole words")
    return command.run("pretraining_distributions", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    if arguments.write_text:
        from bert_tf.data.corpora.corpus import Corpus

        documents = Corpus(arguments.write_text, "wikitext")
        write_text(arguments.text, "\n\n".join("\n".join(lines) for lines in documents) + "\n")
        return
    for name in ("vocab", "reference_records"):
        if getattr(arguments, name) is None:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} is missing; only --write-text goes without")
    from bert_tf.io.vocabulary import read_vocabulary

    vocabulary = read_vocabulary(arguments.vocab)
    with tempfile.TemporaryDirectory() as place:
        passes = [
            describe(batches, vocabulary)
            for batches in our_passes(arguments, Path(place) / "shards")
        ]
    theirs = describe(reference_batches(arguments), vocabulary)
    print(f"{'':44}{'reference':>11}{'ours':>11}{'std. error':>12}{'difference':>12}")
    for name, value in theirs.items():
        values = np.array([each[name] for each in passes])
        error = values.std(ddof=1) * np.sqrt(1 / len(passes) + 1 / arguments.dupe_factor)
        apart = (values.mean() - value) / error if error else 0.0
        print(f"{name:44}{value:11.4f}{values.mean():11.4f}{error:12.4f}{apart:9.1f} se")


def our_passes(arguments: argparse.Namespace, shards: Path) -> Iterator[Iterable[Batch]]:
    """The first epoch of each of several seeds."""
    from bert_tf.data.corpora.corpus import Corpus
    from bert_tf.data.corpora.shard_data import ShardData
    from bert_tf.data.corpora.shard_writing import write_token_shards
    from bert_tf.text import Tokenizer

    write_token_shards(
        Corpus(arguments.text, "sentence_per_line"), Tokenizer(arguments.vocab), shards
    )
    for seed in range(arguments.passes):
        data = ShardData(
            shards,
            _BATCH,
            _MAX_LENGTH,
            _PREDICTIONS,
            seed=seed,
            whole_word=arguments.whole_words,
        )
        batches = data.dataset().take(data.steps_per_epoch).as_numpy_iterator()
        yield (inputs | targets for inputs, targets in batches)


def reference_batches(arguments: argparse.Namespace) -> Iterator[Batch]:
    """The reference's examples under our names."""
    from bert_tf.data.records.files import RecordFile
    from bert_tf.data.records.format import RecordFormat

    file = RecordFile(arguments.reference_records)
    format = RecordFormat.of(file)
    for first in range(0, len(file), 1000):
        yield format.parse(file.read(first, min(first + 1000, len(file))))


def describe(batches: Iterable[Batch], vocabulary: tuple[str, ...]) -> dict[str, float]:
    """Means over all examples."""
    mask_id = vocabulary.index("[MASK]")
    rows: list[np.ndarray] = []
    kinds = np.zeros(3)
    for batch in batches:
        length = batch["input_mask"].sum(1)
        b_length = batch["input_type_ids"].sum(1) - 1
        a_length = length - b_length - 3
        weights = batch["masked_lm_weights"] > 0
        found = np.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], 1)
        masked, kept = found == mask_id, found == batch["masked_lm_ids"]
        kinds += [np.sum(weights & kind) for kind in (masked, kept, ~masked & ~kept)]
        number = weights.sum(1)
        place = (batch["masked_lm_positions"] * weights).sum(1) / number / length
        columns = [length, a_length, b_length, number, batch["next_sentence_labels"], place]
        rows.append(np.stack(columns))
    length, a_length, b_length, number, label, place = np.concatenate(rows, axis=1)
    random = label == 1
    return {
        "masked tokens, share of all": number.sum() / length.sum(),
        "masked tokens in an example": number.mean(),
        "  replaced by [MASK], share": kinds[0] / kinds.sum(),
        "  kept, share": kinds[1] / kinds.sum(),
        "  replaced by a random token, share": kinds[2] / kinds.sum(),
        "  place in the example, 0 to 1": place.mean(),
        "random next segments, share": random.mean(),
        "tokens in an example": length.mean(),
        "  share of examples that are full": np.mean(length == _MAX_LENGTH),
        "  share of examples below 64 tokens": np.mean(length < 64),
        "  true pairs": length[~random].mean(),
        "  random pairs": length[random].mean(),
        "tokens in segment A": a_length.mean(),
        "  standard deviation of A": a_length.std(),
        "  A in true pairs": a_length[~random].mean(),
        "tokens in segment B": b_length.mean(),
        "  standard deviation of B": b_length.std(),
        "  B in random pairs": b_length[random].mean(),
        "share of examples with A longer than B": np.mean(a_length > b_length),
    }


if __name__ == "__main__":
    sys.exit(main())
