"""What other programs wrote is read, and computes what they computed."""

import numpy as np
import pytest

from bert_tf.checkpoints import reading
from tests.checkpoints import tiny_models as tiny

POOLER = ("encoder/pooler/kernel", "encoder/pooler/bias")
WITHOUT_POOLER = {
    "BertForMaskedLM": "PreTrainer",
    "BertLMHeadModel": "PreTrainer",
    "BertForTokenClassification": "TokenClassifier",
    "BertForQuestionAnswering": "QuestionAnswerer",
}
TRANSFORMERS = {
    **WITHOUT_POOLER,
    "BertModel": "Encoder",
    "BertForPreTraining": "PreTrainer",
    "BertForSequenceClassification": "TextClassifier",
    "BertForMultipleChoice": "MultipleChoice",
}
# The rest of the family, whose encoders have no pooler; that of two heads belongs to the head.
FAMILY = {
    **{
        name.replace("Bert", kind): model
        for name, model in TRANSFORMERS.items()
        for kind in ("DistilBert", "Electra")
        if name not in ("BertForPreTraining", "BertLMHeadModel")
    },
    "ElectraForPreTraining": "Encoder",
    "ElectraForCausalLM": "PreTrainer",
}
# Folder -> the class of its model. Made by tests/fixtures/make_*.py.
FOLDERS = {
    **{f"huggingface_heads/{name}": model for name, model in FAMILY.items()},
    "huggingface_heads/decoder": "TextClassifier",
    **{f"huggingface_heads/{name}": model for name, model in TRANSFORMERS.items()},
    **{f"huggingface_tf/{n}": m for n, m in TRANSFORMERS.items() if n != "BertLMHeadModel"},
    "huggingface_tf/BertForNextSentencePrediction": "NextSentence",
    "huggingface_tf/sharded": "TextClassifier",
    "huggingface_tf/safetensors": "TextClassifier",
    "huggingface_tf/DistilBertForSequenceClassification": "TextClassifier",
    "huggingface_tf/ElectraForMultipleChoice": "MultipleChoice",
    "keras_hub/BertBackbone": "Encoder",
    "keras_hub/BertTextClassifier": "TextClassifier",
    "keras_hub/BertMaskedLM": "PreTrainer",
    "keras_hub/DistilBertTextClassifier": "MultiLabelClassifier",
    "keras_hub/DistilBertMaskedLM": "PreTrainer",
    "google_tiny_pretraining": "PreTrainer",
    "google_tiny_classifier": "TextClassifier",
    "google_tiny_squad": "QuestionAnswerer",
    "model_garden_tiny_encoder": "Encoder",
    "model_garden_tiny_pretrainer": "PreTrainer",
    "model_garden_tiny_classifier": "TextClassifier",
    "model_garden_tiny_span": "QuestionAnswerer",
    "model_garden_tiny_tokens": "TokenClassifier",
    "tf_hub_tiny": "PreTrainer",
}
DETECTOR = "discriminator_predictions."
NOTES = {
    "huggingface_heads/ElectraForPreTraining": (
        "it is the discriminator of an ELECTRA, which bert_tf reads as an encoder, without the "
        "head that detects replaced tokens",
    ),
    "google_tiny_pretraining": ("92 slot variables of the optimizer skipped",),
    "google_tiny_classifier": ("82 slot variables of the optimizer skipped",),
    "google_tiny_squad": ("82 slot variables of the optimizer skipped",),
    "model_garden_tiny_pretrainer": ("the pooler of the head replaces that of the encoder",),
    "model_garden_tiny_classifier": ("84 variables of the optimizer skipped",),
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_model_is_read_and_computes_the_same(folder):
    expected = dict(np.load(tiny.FIXTURES / folder / "expected.npz"))
    model, report = tiny.load(tiny.FIXTURES / folder)

    assert type(model).__name__ == FOLDERS[folder]
    kind = folder.split("/")[-1]
    has_no_pooler = kind in FAMILY and FOLDERS[folder] not in ("TextClassifier", "MultipleChoice")
    has_no_pooler |= kind == "DistilBertMaskedLM"
    assert report.new == (POOLER if kind in WITHOUT_POOLER or has_no_pooler else ())
    assert all(name.startswith(DETECTOR) for name in report.ignored)
    assert bool(report.ignored) == (kind == "ElectraForPreTraining")
    assert report.notes == NOTES.get(folder, ())
    if folder == "model_garden_tiny_pretrainer":
        # Its head has a pooler of its own, which is trained; the encoder's is not.
        expected.pop("pooled_output")
    assert tiny.difference(model, expected) < tiny.TOLERANCE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("huggingface_heads/sharded", "huggingface_heads/BertModel"),
        ("huggingface_tf/sharded", "huggingface_tf/BertForSequenceClassification"),
        ("huggingface_tf/safetensors", "huggingface_tf/BertForSequenceClassification"),
    ],
)
def test_the_weights_of_a_model_are_the_same_in_all_forms(one, other):
    tiny.assert_equal(*(tiny.load(tiny.FIXTURES / name)[0] for name in (one, other)))


def test_settings_are_those_of_the_other_program():
    found = reading.find(tiny.FIXTURES / "google_tiny_classifier").encoder
    assert found.hidden_act == "gelu_new"  # google-research's "gelu" is the tanh form
    assert (found.attention_probs_dropout_prob, found.initializer_range) == (0.2, 0.3)

    heads = tiny.FIXTURES / "huggingface_heads"
    classifier = reading.find(heads / "BertForSequenceClassification").description
    assert classifier.labels == ("good", "bad", "neither")
    assert classifier.head == {"num_classes": 3, "dropout": 0.3}
    # Labels that are only numbered are no labels.
    assert reading.find(heads / "BertForTokenClassification").description.labels == ()
    assert reading.find(heads / "BertLMHeadModel").encoder.attention == "left_to_right"
