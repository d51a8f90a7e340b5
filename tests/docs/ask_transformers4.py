"""Makes checkpoints with the TensorFlow classes of transformers 4, and prints their answers.

Runs in the environment `.venv-transformers4/`, in the folder that gets the checkpoints. The last
line that it prints is a JSON object: the answers by the checkpoint's folder.
"""

import json
import os
from pathlib import Path

# pipeline() of 4.57 fails with TensorFlow; the classes work if torch is hidden.
os.environ |= {"TF_USE_LEGACY_KERAS": "1", "USE_TF": "1", "USE_TORCH": "0"}

import numpy as np
import tensorflow as tf
import transformers

PIECES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on mat a where ? . ##s what film good"
).split()
SIZES = {
    "vocab_size": len(PIECES),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 384,
}
CLASSES = {
    "google-bert/bert-base-uncased": ("ForPreTraining", {}),
    "reviews": ("ForSequenceClassification", {"id2label": {0: "bad", 1: "good"}}),
    "questions": ("ForQuestionAnswering", {}),
    "entities": ("ForTokenClassification", {"id2label": {0: "O", 1: "B-X", 2: "I-X"}}),
    "gaps": ("ForMaskedLM", {}),
    "follows": ("ForNextSentencePrediction", {}),
    "endings": ("ForMultipleChoice", {}),
}


def main() -> None:
    """Writes the checkpoints and prints the answers."""
    Path("vocab.txt").write_text("\n".join(PIECES) + "\n")
    tokenizer = transformers.BertTokenizerFast("vocab.txt")
    answers = {}
    for folder, (name, fields) in CLASSES.items():
        numbers = np.random.default_rng(0)
        config = transformers.BertConfig(**SIZES, **fields)
        model = getattr(transformers, f"TFBert{name}")(config)
        model(model.dummy_inputs)
        for weight in model.weights:
            weight.assign_add(0.3 * numbers.standard_normal(weight.shape))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if folder == "reviews":
            model.save_weights("weights.h5")
        answers[folder] = answer(name, model, tokenizer)
    print(json.dumps(answers, default=float))


def answer(name: str, model: transformers.TFPreTrainedModel, tokenizer) -> object:
    """What a model says to one input of its task."""
    given = {"model": model, "tokenizer": tokenizer, "framework": "tf"}
    if name == "ForSequenceClassification":
        return transformers.TextClassificationPipeline(**given)("what a good film .", top_k=None)
    if name == "ForQuestionAnswering":
        ask = transformers.QuestionAnsweringPipeline(**given)
        return ask(question="where ?", context="the cat sat on the mat .")
    if name == "ForTokenClassification":
        ask = transformers.TokenClassificationPipeline(**given, aggregation_strategy="first")
        return ask("the cat sat on the mat")
    if name == "ForMaskedLM":
        return transformers.FillMaskPipeline(**given)("the [MASK] sat .")
    if name == "ForNextSentencePrediction":
        logits = model(tokenizer("the cat", "sat .", return_tensors="tf")).logits
        return tf.nn.softmax(logits).numpy().tolist()[0]
    if name == "ForMultipleChoice":
        both = tokenizer(["the cat"] * 2, ["sat .", "ran ."], return_tensors="tf")
        logits = model({key: value[tf.newaxis] for key, value in both.items()}).logits
        return tf.nn.softmax(logits).numpy().tolist()[0]
    return None


if __name__ == "__main__":
    main()
