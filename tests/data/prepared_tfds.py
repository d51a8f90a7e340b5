"""A data set as TensorFlow Datasets (TFDS) prepares it, of examples given here."""

import pytest
import tensorflow as tf

tfds = pytest.importorskip("tensorflow_datasets")


def prepare(folder, examples, shards=(4, 3, 3)):
    """A data set with the features of the examples; `shards` has the rows of each file."""
    features = tfds.features.FeaturesDict(
        {
            key: tfds.features.Text() if isinstance(examples[0][key], str) else tf.int64
            for key in examples[0]
        }
    )
    folder.mkdir()
    left = iter(examples)
    for number, shard in enumerate(shards):
        name = f"tiny-train.tfrecord-{number:05d}-of-{len(shards):05d}"
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for _ in range(shard):
                writer.write(features.serialize_example(next(left)))
    split = tfds.core.SplitInfo(name="train", shard_lengths=list(shards), num_bytes=1)
    template = tfds.core.ShardedFileTemplate(
        data_dir=folder, dataset_name="tiny", filetype_suffix="tfrecord"
    )
    tfds.folder_dataset.write_metadata(
        data_dir=folder, features=features, split_infos=[split], filename_template=template
    )
    return folder


def cut_off(folder):
    """Takes away the end of the last file."""
    last = max(folder.glob("*tfrecord*"))
    last.write_bytes(last.read_bytes()[:-3])
    return folder
