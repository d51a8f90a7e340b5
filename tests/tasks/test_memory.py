"""What a model leaves in the process after it."""

from bert_tf.compat import registered_gradients
from tests.tasks import tiny_objects as tiny


def test_a_model_that_answered_and_was_exported_leaves_no_gradients(tmp_path):
    """They would hold its graphs, see `bert_tf.training.custom_gradients`."""
    model = tiny.classifier(labels=["bad", "good"])
    before = set(registered_gradients())
    model.predict(["the cat"], verbose=0)
    model.export(tmp_path / "model")
    assert set(registered_gradients()) == before
