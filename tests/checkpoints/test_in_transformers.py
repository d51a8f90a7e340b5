"""transformers itself reads what is written: no weight missing or unexpected, the same outputs.

Runs where torch and transformers are installed; `make bench` installs them.
"""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import MaskedLM, MultipleChoice
from bert_tf.checkpoints import conversion
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = pytest.mark.slow

READERS = {
    "encoder": "AutoModel",
    "pretrainer": "AutoModelForPreTraining",
    "masked_lm": "AutoModelForMaskedLM",
    "classifier": "AutoModelForSequenceClassification",
    "labeller": "AutoModelForSequenceClassification",
    "filler": "AutoModelForMaskedLM",
    "follower": "AutoModelForNextSentencePrediction",
    "regressor": "AutoModelForSequenceClassification",
    "span": "AutoModelForQuestionAnswering",
    "tokens": "AutoModelForTokenClassification",
    "choice": "AutoModelForMultipleChoice",
}
# Our names of outputs -> theirs.
OUTPUTS = {
    "sequence_output": ("last_hidden_state",),
    "masked_lm": ("prediction_logits", "logits"),
    "next_sentence": ("seq_relationship_logits",),
    "start": ("start_logits",),
    "end": ("end_logits",),
    "logits": ("logits",),
}
# Outputs that a head computes from a whole text; transformers always computes them from [CLS].
POOLED = {
    "pretrainer": "next_sentence",
    "classifier": "logits",
    "labeller": "logits",
    "follower": "logits",
    "regressor": "logits",
    "choice": "logits",
}


MODELS = {
    "bert": {},
    "bert from left to right": {"attention": "left_to_right"},
    "bert that pools the first": {"attention": "left_to_right", "pools_first": True},
    "distilbert": tiny.DISTILBERT,
    "electra": tiny.ELECTRA,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", READERS)
def test_transformers_computes_the_same_from_what_is_written(tmp_path, capsys, kind, name):
    sizes = MODELS[name]
    if "model_type" in sizes and kind in ("pretrainer", "follower"):
        pytest.skip("transformers has no such class")
    model = tiny.make(kind, **sizes)
    conversion.save(model, tmp_path / "out", "huggingface")
    causal = "attention" in sizes
    pools_the_last = causal and kind in (*POOLED, "encoder") and "pools_first" not in sizes
    assert pools_the_last == ("will pool the first token" in capsys.readouterr().err)
    causal = kind in ("masked_lm", "filler") and causal
    reader = getattr(transformers, "AutoModelForCausalLM" if causal else READERS[kind])

    theirs, loading = reader.from_pretrained(
        tmp_path / "out", output_loading_info=True, attn_implementation="eager"
    )

    assert not any(loading.values()), loading
    inputs = _inputs(model)
    given = {name: torch.tensor(value) for name, value in inputs.items()}
    with torch.no_grad():
        types = {"token_type_ids": given["input_type_ids"]} if name != "distilbert" else {}
        expected = theirs.eval()(
            input_ids=given["input_word_ids"], attention_mask=given["input_mask"], **types
        )
    for output, found in _outputs(model, inputs).items():
        if pools_the_last and output == POOLED.get(kind):
            continue
        value = next(expected[key] for key in OUTPUTS[output] if key in expected).numpy()
        mask = inputs["input_mask"]
        if value.shape[:2] == mask.shape:  # one for each token
            value = value * mask.reshape(mask.shape + (1,) * (value.ndim - 2))
            found = found * mask.reshape(mask.shape + (1,) * (value.ndim - 2))
        difference = np.abs(found - value.reshape(found.shape)).max()
        assert difference < tiny.TOLERANCE, (output, difference)


@pytest.mark.parametrize("sizes", [{}, tiny.DISTILBERT, tiny.ELECTRA])
@pytest.mark.parametrize("lower_case", [True, False])
def test_transformers_makes_the_same_tokenizer(tmp_path, lower_case, sizes):
    ours = Tokenizer(tiny.PIECES, lower_case=lower_case)
    conversion.save(tiny.make("encoder", **sizes), tmp_path / "out", "huggingface", ours)

    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert ("token_type_ids" in theirs("a b")) == (sizes is not tiny.DISTILBERT)

    for text in ("ab Ab d.", "á b"):
        found = theirs(text, add_special_tokens=False)["input_ids"]
        assert found == ours.tokenize([text]).to_list()[0]
    assert (theirs.mask_token_id, theirs.model_max_length) == (ours.mask_id, 7)


def _inputs(model) -> dict[str, np.ndarray]:
    random = np.random.RandomState(1)
    shape = (1, 2, 7) if isinstance(model, MultipleChoice) else (2, 7)
    mask = np.ones(shape, np.int64)
    mask[..., 1, 4:] = 0
    ids = random.randint(0, len(tiny.PIECES), shape)
    return dict(zip(tiny.INPUTS, (ids, mask, random.randint(0, 2, shape)), strict=True))


def _outputs(model, inputs) -> dict[str, np.ndarray]:
    given = {name: tf.constant(value, tf.int32) for name, value in inputs.items()}
    if isinstance(model, PreTrainer | MaskedLM):
        positions = np.tile(np.arange(7, dtype=np.int32), (2, 1))
        given["masked_lm_positions"] = tf.constant(positions)
    found = model(given)
    found = dict(found) if isinstance(found, dict) else {"logits": found}
    return {name: value.numpy() for name, value in found.items() if name in OUTPUTS}
