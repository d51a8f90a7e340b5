"""`bert-tf mine`: pairs of question and answer with the hard negatives that a model finds."""

import json
from pathlib import Path
from typing import Any

from bert_tf.asking.row_files import read_blocks, text_of
from bert_tf.console import logger
from bert_tf.data import tables
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.io.atomic import text_file
from bert_tf.io.files import ending
from bert_tf.io.json_files import whole_text
from bert_tf.io.remote import local_path
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.mining import check_settings, mine_negatives
from bert_tf.tasks.embedding import files
from bert_tf.tasks.embedding.data import collection_of
from bert_tf.tasks.embedding.model import TextEmbedder
from bert_tf.tasks.loading import load


def mine(
    path: str, data: str, out: str, corpus: str | None = None, negatives: int = 3, **options: Any
) -> None:
    """Writes a JSON line for each pair: `query`, `positive` and `negatives`, a list.

    All lists have the same length, so that `task: embedding` and `task: reranking` read the file.
    Questions with fewer negatives are left out, and their number is printed.
    """
    if Path(out).suffix != ".jsonl":
        raise UserError(f"--out {out} must end in .jsonl; the file holds JSON lines")
    check_settings(negatives, **options)
    with text_file(out) as file:
        collection = _collection(local_path(data), corpus)
        model = load(path)
        kind = model.task_class() if hasattr(model, "task_class") else type(model)
        if not issubclass(kind, TextEmbedder):
            raise UserError(
                f"{path} is a {kind.__name__}, which gives no vectors; give an embedder"
            )

        def vectors(texts: dict[str, str], *prompts: str) -> Any:
            known = [name for name in prompts if name in model.signature_names()]
            named: dict[str, Any] = {"prompt": known[0]} if known else {}
            return model.predict([*texts.values()], **named)

        found = mine_negatives(
            collection,
            vectors(collection.queries, "query"),
            vectors(collection.passages, "document", "passage", "corpus"),
            negatives,
            **options,
            cosine=model.settings.get("similarity_function") != "dot",
        )
        counts = [*map(len, found.values())]
        short = sum(count < negatives for count in counts)
        said = f"{short} of {len(counts)} questions are left out: they have fewer than {negatives} "
        said += f"negatives ({counts.count(0)} have none)"
        if short == len(counts):
            raise UserError(f"{said}; lower --negatives or --margin, or widen --range")
        texts = collection.passages
        lines = [
            json.dumps(
                {"query": collection.queries[query], "positive": texts[answer], "negatives": own},
                ensure_ascii=False,
            )
            for query, passages in found.items()
            if len(own := [texts[name] for name in passages]) == negatives
            for answer, degree in collection.relevant[query].items()
            if degree > 0
        ]
        file.write("\n".join([*lines, ""]))
    logger.info(f"{out}: {len(lines)} pairs with {negatives} negatives each; {said}")


def _collection(path: Path, corpus: str | None) -> Collection:
    """The questions of a file, with the passages that answer them and all others."""
    form = "beir" if path.parent.name == "qrels" else ending(path)
    if form not in (*tables.FORMATS, "beir"):
        raise UserError(f"{path} must end in .tsv, .csv or .jsonl, or be FOLDER/qrels/SPLIT.tsv")
    found = files.read(path, form, judged=True)
    if isinstance(found, Columns):
        if len(found.values) < 2 or found.targets is not None:
            raise UserError(f"{path} has no pairs; name its columns query (or anchor) and positive")
        found = collection_of(found)
    blocks = read_blocks(corpus, {"text": 1}) if corpus else ()
    texts = (whole_text(text_of(row, "text")) for rows, _ in blocks for row in rows)
    further = {f"corpus {number}": text for number, text in enumerate(texts) if text.strip()}
    return found._replace(passages=found.passages | further)
