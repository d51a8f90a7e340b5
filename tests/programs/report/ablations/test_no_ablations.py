"""Runs that are no ablation."""

from bert_tf.checkpoints import conversion


def test_other_runs_keep_the_table_of_their_benchmark(house):
    encoder = house.encoder()
    conversion.save(encoder, house.folder / "published")
    published = house.finetuning("published_sst2", house.folder / "published", {"accuracy": 0.9})
    bert = house.pretraining("bert", 9.0)
    tables = house.page(published, house.finetuning("a", bert, {"accuracy": 0.7}), bert)
    assert "GLUE: SST-2" in tables and not any("table" in title for title in tables)
    names = [row[0] for row in tables["GLUE: SST-2"]]
    assert "published_sst2" in names and "a" in names
