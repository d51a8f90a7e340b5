"""Index arithmetic on ragged rows."""

import pytest
import tensorflow as tf

from bert_tf.text import rows


@pytest.mark.parametrize(
    ("lengths", "owners", "starts"),
    [
        ([2, 0, 3], [0, 0, 2, 2, 2], [True, False, True, False, False]),
        ([0, 0, 1, 0], [2], [True]),
        ([0, 0], [], []),
        ([], [], []),
    ],
)
def test_values_know_their_row(lengths, owners, starts):
    splits = rows.splits_of(tf.constant(lengths, tf.int32))
    assert rows.owners(splits).numpy().tolist() == owners
    assert rows.starts_row(splits).numpy().tolist() == starts
