"""A folder of BEIR in the tiny language."""

import json
from pathlib import Path


def write_beir(folder: Path) -> Path:
    """Writes twelve passages, and queries of which each has one relevant passage."""
    animals = ("cat", "dog", "bird", "fish")
    passages = [
        {"_id": f"p{i}", "text": f"{animals[i % 4]} {('sat', 'ran', 'flew')[i % 3]} on"}
        for i in range(12)
    ]
    passages[0]["title"] = "Cats"
    queries = [{"_id": f"q{i}", "text": f"the {animals[i % 4]}"} for i in range(8)]
    for name, rows in (("corpus", passages), ("queries", queries)):
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    (folder / "qrels").mkdir(exist_ok=True)
    judged = {
        "train": ["q0\tp0\t2", "q0\tp1\t0", "q1\tp1\t1"],
        "dev": ["q2\tp2\t1", "q3\tp7\t1"],
        "test": ["q4\tp4\t1"],
    }
    for split, lines in judged.items():
        text = "\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n"
        (folder / "qrels" / f"{split}.tsv").write_text(text)
    return folder
