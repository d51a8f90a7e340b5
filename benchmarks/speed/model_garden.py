"""Model Garden's encoder in a graph of its own, from the weights of transformers."""

import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.speed import inputs
from benchmarks.speed.turns import Job, serve
from bert_tf.checkpoints import conversion, reading
from bert_tf.checkpoints.model_garden_classes import make_encoder


def prepare(settings: dict[str, Any]) -> Job:
    """Token ids to the last layer, without padding; it knows no other work."""
    tf.config.threading.set_intra_op_parallelism_threads(settings["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if settings["precision"] == "bfloat16":
        import tf_keras

        tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    peer = make_encoder(reading.find(settings["weights"]).encoder)
    batch = inputs.full_batch(settings["batch"], settings["length"], 30522)
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    peer(tensors)
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / "model"
        conversion.convert(settings["weights"], converted, "model_garden")
        prefix = next(converted.glob("*.index")).with_suffix("")
        tf.train.Checkpoint(encoder=peer).restore(str(prefix)).assert_existing_objects_matched()
    function = tf.function(lambda each: tf.cast(peer(each)["sequence_output"], tf.float32))
    last = []

    def step() -> None:
        last[:] = [function(tensors)]

    return Job(step, lambda: last[0].numpy())


if __name__ == "__main__":
    serve(prepare)
