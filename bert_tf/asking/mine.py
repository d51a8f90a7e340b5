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
from bert_tf.tasks.question_answering.squad import read_squad

# The folder of BEIR's judgements, and what its passages are called by a model's prompts.
_QRELS, _PASSAGES = "qrels", ("document", "passage", "corpus")


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
        data: pairs, as `anchor` or `query` and `positive` in a file that ends in .tsv, .csv or
            .jsonl; a SQuAD file, which ends in .json; or the file of judgements of a folder in
            BEIR's form, FOLDER/qrels/SPLIT.tsv.
        out: the file, which ends in .jsonl.
        corpus: further passages, one per line, or JSON lines with `text`. Without them, the
            answers of the other questions are the passages; BEIR's folders have their own.
        negatives, ranks, margin: as for `mine_negatives`.

    Raises:
        UserError: as `mine_negatives`; the model gives no vectors, a file has another form, or no
            question has enough negatives.
    """
    if Path(out).suffix != ".jsonl":
        raise UserError(f"--out {out} must end in .jsonl; the file holds JSON lines")
    collection = _collection(Path(data), corpus)
    model: Any = load(path)
    kind = type(model) if not hasattr(model, "task_class") else model.task_class()
    if not issubclass(kind, TextEmbedder):
        raise UserError(f"{path} is a {kind.__name__}, which gives no vectors; give an embedder")
    prompts = model.signature_names()

    def embed(texts: Sequence[str], prompt: str | None) -> Any:
        named: dict[str, Any] = {} if prompt is None else {"prompt": prompt}
        return model.predict(list(texts), verbose=0, **named)

    found = mine_negatives(
        embed,
        collection,
        negatives,
        (ranks[0], ranks[1]),
        margin,
        query_prompt="query" if "query" in prompts else None,
        passage_prompt=next((name for name in _PASSAGES if name in prompts), None),
        cosine=model.settings.get("similarity_function") != "dot",
    )
    lines = [
        {"query": collection.queries[query], "positive": positive, "negatives": texts}
        for query, passages in found.items()
        if len(texts := [collection.passages[name] for name in passages]) == negatives
        for positive in dict.fromkeys(
            collection.passages[name]
            for name, degree in collection.relevant[query].items()
            if degree > 0
        )
    ]
    counts = [*map(len, found.values())]
    short, none = sum(count < negatives for count in counts), counts.count(0)
    left_out = (
        f"{short} of {len(counts)} questions have fewer than {negatives} negatives, "
        f"{none} of them none"
    )
    if not lines:
        raise UserError(
            f"{left_out}; lower --negatives or --margin, widen --range, or give more passages with "
            "--corpus"
        )
    write_text(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    if short:
        logger.info(f"{left_out}; they are left out")
    logger.info(f"{out}: {len(lines)} pairs with {negatives} negatives each")


def _collection(path: Path, corpus: str | None) -> Collection:
    """The questions of a file, with the passages that answer them and all others."""
    ending = path.suffix[1:]
    if path.parent.name == _QRELS:
        if corpus is not None:
            raise UserError(f"{path} belongs to a folder with a corpus of its own; omit --corpus")
        collection = files.read(path, "beir", judged=True)
        assert isinstance(collection, Collection)
    elif ending == "json":
        rows = read_squad(path)
        answered = [i for i, answers in enumerate(rows.targets or ()) if answers]
        if not answered:
            raise UserError(f"{path} has no answered question; give pairs of question and answer")
        questions = rows.take(answered)
        collection = collection_of(Columns(("text_1", "text_2"), questions.values))
    elif ending in tables.FORMATS:
        rows = files.read(path, ending)
        assert isinstance(rows, Columns)
        if len(rows.values) < 2 or rows.targets is not None:
            raise UserError(
                f"{path} has no pairs of question and answer; name the columns query (or anchor) "
                "and positive"
            )
        collection = collection_of(rows)
    else:
        raise UserError(
            f"{path} must end in .tsv, .csv, .jsonl or .json, or be FOLDER/{_QRELS}/SPLIT.tsv"
        )
    if corpus is None:
        return collection
    texts = [text_of(row, "text") for each in read_blocks(corpus, {"text": 1}) for row in each.rows]
    further = {f"corpus {number}": text for number, text in enumerate(texts) if text.strip()}
    return collection._replace(passages=collection.passages | further)
