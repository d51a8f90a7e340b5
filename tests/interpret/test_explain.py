"""What `model.explain` returns: the arrays of the page, and its picture."""

import numpy as np
import pytest

from bert_tf import TaskModel, TextClassifier
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal


@pytest.mark.end_to_end
def test_explanations_are_arrays_and_a_picture():
    model = tiny.classifier(labels=["bad", "good"])
    found = model.explain("the cat sat .")
    assert found.tokens == ("[CLS]", "the", "cat", "sat", ".", "[SEP]")
    assert found.offsets.tolist() == [[-1, -1], [0, 3], [4, 7], [8, 11], [12, 13], [-1, -1]]
    assert found.output == f"the log-odds of {model.predict('the cat sat .')['label']}"
    # Completeness: the values add up to what the output changes by.
    assert found.importance.sum() == pytest.approx(found.explained[0].change, abs=1e-3)
    assert found.attention.shape == (1, 2, 6, 6)
    np.testing.assert_allclose(found.attention.sum(axis=-1), 1, rtol=1e-5)
    assert "<small>" in found._repr_html_() and found.output in found._repr_html_()
    assert model.explain(b"the cat sat .").tokens == found.tokens
    (pair,) = tiny.classifier(labels=["a", "b"], pair=True).explain((["é cat"], ["dog"]))
    assert pair.offsets.tolist()[1:] == [[0, 1], [2, 5], [-1, -1], [0, 3], [-1, -1]]
    choices = tiny.chooser().explain(("the cat", ["sat .", "ran ."]))
    assert {each.title for each in choices} == {"1: sat .", "2: ran ."}
    best = tiny.chooser().predict(("the cat", ["sat .", "ran ."]))["choice"]
    assert choices[0].title.startswith(str(best + 1))
    assert choices[0].output == "the score of this choice"
    long = tiny.classifier(labels=["a", "b"], max_length=6, long_text="head_and_tail")
    assert long.explain("the cat sat on the mat .").offsets[-2].tolist() == [23, 24]
    windows = tiny.classifier(labels=["a", "b"], max_length=8, long_text="windows")
    assert "reads windows" in refusal(windows.explain, "the cat")
    assert "no labels yet" in refusal(tiny.classifier().explain, "the cat")


def test_a_class_of_ones_own_has_the_pictures_of_the_family_that_it_extends():
    class Own(TextClassifier):
        pass

    class Reader(TaskModel):
        target, answer, official_metrics = None, None, None

    model = tiny.classifier(labels=["bad", "good"])
    own = Own(model.encoder, model.tokenizer, labels=["bad", "good"])
    assert own.explain("the cat sat").tokens == ("[CLS]", "the", "cat", "sat", "[SEP]")
    reader = Reader(model.encoder, model.tokenizer, {})
    assert refusal(reader.explain, "the cat") == (
        "a Reader has no pictures; register its TaskFamily"
    )


@pytest.mark.slow
def test_tags_and_answers_are_explained():
    tagged = tiny.tagger(labels=["O", "B-x"]).explain("the cat sat")
    assert tagged.tokens == ("[CLS]", "the", "cat", "sat", "[SEP]") and tagged.offsets is None
    assert tagged.output.startswith("the log-odds of B-x for “")
    assert tagged.importance.shape == (5,) and "log-odds" in tagged._repr_html_()
    (asked,) = tiny.answerer().explain((["the cat"], ["dog sat ."]))
    assert asked.output.startswith("the log-probability of ")
    assert asked.attention.shape == (1, 2, 8, 8)


@pytest.mark.end_to_end
def test_a_model_without_a_single_output_shows_its_attention():
    gap = tiny.filler().explain("the [MASK] sat")
    assert gap.tokens[2] == "[MASK]" and gap.offsets.tolist()[2] == [4, 10]
    assert gap.attention.shape == (1, 2, 5, 5)
    vector = tiny.embedder().explain("the cat")
    assert (vector.output, vector.importance.tolist()) == ("", [0, 0, 0, 0])
    assert vector._repr_html_() == "[CLS] the cat [SEP]"
