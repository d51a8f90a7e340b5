"""What a call that is refused says."""

import pytest

import bert_tf


def refusal(call, *arguments, **options) -> str:
    """The sentence of the UserError, which is a ValueError, that a call raises."""
    with pytest.raises(bert_tf.UserError) as caught:
        call(*arguments, **options)
    assert isinstance(caught.value, ValueError)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence
