"""A small model of every task, with data that it can learn, in the tiny language."""

import keras

import bert_tf
from bert_tf.encoder.ablations import encoder_for
from tests import tiny

TEXTS = ["the cat sat", "a dog ran", "the cat swam .", "a dog sat on the mat", "cat", "dog"] * 4
LABELS = ["good", "bad"] * 12
QUESTIONS = ["cat", "dog"] * 8
CONTEXTS = ["the cat sat on the mat", "é dog ran under the log"] * 8
ANSWERS = [{"text": "mat", "start": 19}, {"text": "log", "start": 20}] * 8
WORDS = [["the", "cat", "sat"], ["a", "dog", "bird", "ran"]] * 8
TAGS = [["O", "B-animal", "O"], ["O", "B-animal", "I-animal", "O"]] * 8
LABEL_LISTS = [["cat"], ["dog"], ["cat", "swims"], ["dog"], ["cat"], []] * 4
CHOICES = [["sat .", "ran ."], ["swam", "flew"]] * 4


def encoder(seed=0, **changes):
    keras.utils.set_random_seed(seed)
    sizes = {"initializer_range": 0.1, "num_hidden_layers": 1}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return encoder_for(tiny.encoder_config(16, **sizes | changes))


def tokenizer():
    return tiny.tokenizer()


def classifier(**settings):
    return bert_tf.TextClassifier(encoder(), tokenizer(), **settings)


def regressor(**settings):
    return bert_tf.TextRegressor(encoder(), tokenizer(), **settings)


def answerer(**settings):
    sizes = {"max_length": 24, "stride": 8, "max_question_length": 4}
    return bert_tf.QuestionAnswerer(encoder(), tokenizer(), **sizes | settings)


def tagger(**settings):
    return bert_tf.TokenClassifier(encoder(), tokenizer(), **{"max_length": 16} | settings)


def chooser(**settings):
    return bert_tf.MultipleChoice(encoder(), tokenizer(), **settings)


def reranker(initializer_range=0.1, **settings):
    return bert_tf.Reranker(encoder(initializer_range=initializer_range), tokenizer(), **settings)


def zero_shot(**settings):
    labels = ["contradiction", "entailment", "neutral"]
    return bert_tf.ZeroShotClassifier(encoder(), tokenizer(), labels, **settings)


def filler(**settings):
    return bert_tf.MaskedLM(encoder(), tokenizer(), **settings)


def follower(**settings):
    return bert_tf.NextSentence(encoder(), tokenizer(), **settings)


def embedder(**settings):
    return bert_tf.TextEmbedder(encoder(), tokenizer(), **settings)


def multi_labeller(**settings):
    return bert_tf.TextClassifier(encoder(), tokenizer(), multi_label=True, **settings)
