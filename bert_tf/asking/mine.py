"""`bert-tf mine`: pairs of question and answer with the hard negatives that a model finds."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.asking.row_files import read_blocks, text_of
from bert_tf.console import logger
from bert_tf.data import tables
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.mining import mine_negatives
from bert_tf.tasks.embedding import files
from bert_tf.tasks.embedding.data import collection_of
from bert_tf.tasks.embedding.model import TextEmbedder
from bert_tf.tasks.loading import load


def mine(
    path: str | os.PathLike,
    data: str | os.PathLike,
    out: str | os.PathLike,
    corpus: str | None = None,
    negatives: int = 3,
    ranks: Sequence[int] = (1, 100),
    margin: float | None = None,
) -> None:
    """Writes a JSON line for each pair: `query`, `positive` and `negatives`, a list.

    All lists have the same length, so that `task: embedding` reads the file, and `task: reranking`
    too. Questions with fewer negatives are left out, and their number is printed.

    Args:
        path: an embedder that `bert_tf.load` opens.
        data, corpus: files as `bert-tf mine --help` says.
        out: the file, which ends in .jsonl.
        negatives, ranks, margin: as for `mine_negatives`.

    Raises:
        UserError: as `mine_negatives`; the model gives no vectors, a file has another form, or no
            question has enough negatives.
    """
    if Path(out).suffix != ".jsonl":
        raise UserError(f"--out {out} must end in .jsonl; the file holds JSON lines")
    collection, model = _collection(Path(data), corpus), load(path)
    kind = model.task_class() if hasattr(model, "task_class") else type(model)
    if not issubclass(kind, TextEmbedder):
        raise UserError(f"{path} is a {kind.__name__}, which gives no vectors; give an embedder")

    def vectors(texts: dict[str, str], *prompts: str) -> Any:
        known = [name for name in prompts if name in model.signature_names()]
        return model.predict([*texts.values()], **({"prompt": known[0]} if known else {}))

    found = mine_negatives(
        collection,
        vectors(collection.queries, "query"),
        vectors(collection.passages, "document", "passage", "corpus"),
        negatives,
        (ranks[0], ranks[1]),
        margin,
        cosine=model.settings.get("similarity_function") != "dot",
    )
    lines = [
        {"query": collection.queries[query], "positive": collection.passages[answer]}
        | {"negatives": [collection.passages[name] for name in passages]}
        for query, passages in found.items()
        for answer, degree in collection.relevant[query].items()
        if degree > 0 and len(passages) == negatives
    ]
    counts = [*map(len, found.values())]
    if short := sum(count < negatives for count in counts):
        left_out = f"{short} of {len(counts)} questions have fewer than {negatives} negatives, "
        left_out += f"{counts.count(0)} of them none, and are left out"
        if not lines:
            raise UserError(f"{left_out}; lower --negatives or --margin, or widen --range")
        logger.info(left_out)
    write_text(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    logger.info(f"{out}: {len(lines)} pairs with {negatives} negatives each")


def _collection(path: Path, corpus: str | None) -> Collection:
    """The questions of a file, with the passages that answer them and all others."""
    is_beir = path.parent.name == "qrels"
    if not is_beir and path.suffix[1:] not in tables.FORMATS:
        raise UserError(f"{path} must end in .tsv, .csv or .jsonl, or be FOLDER/qrels/SPLIT.tsv")
    if is_beir and corpus is not None:
        raise UserError(f"{path} belongs to a folder with a corpus of its own; omit --corpus")
    found = files.read(path, "beir" if is_beir else path.suffix[1:], judged=True)
    if isinstance(found, Columns):
        if len(found.values) < 2 or found.targets is not None:
            raise UserError(f"{path} has no pairs; name its columns query (or anchor) and positive")
        found = collection_of(found)
    texts = (
        [text_of(row, "text") for b in read_blocks(corpus, {"text": 1}) for row in b.rows]
        if corpus
        else []
    )
    further = {f"corpus {number}": text for number, text in enumerate(texts) if text.strip()}
    return found._replace(passages=found.passages | further)
