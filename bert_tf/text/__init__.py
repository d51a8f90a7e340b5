"""Strings to token ids inside the graph: cleaning, WordPiece, offsets, packing, windows."""

from bert_tf.io.vocabulary import SPECIAL_TOKENS, read_vocabulary
from bert_tf.text.lite_tokenizer import LiteTokenizer, QuestionFeatures
from bert_tf.text.packing import Features, Preprocessor, pack, truncate
from bert_tf.text.tokenizer import Pieces, Tokenizer
from bert_tf.text.windows import QuestionWindows, WindowPreprocessor, Windows, slide
from bert_tf.text.words import (
    WordPieces,
    WordPreprocessor,
    WordWindows,
    tokenize_words,
    without_padding,
)

__all__ = [
    "SPECIAL_TOKENS",
    "Features",
    "LiteTokenizer",
    "Pieces",
    "Preprocessor",
    "QuestionFeatures",
    "QuestionWindows",
    "Tokenizer",
    "WindowPreprocessor",
    "Windows",
    "WordPieces",
    "WordPreprocessor",
    "WordWindows",
    "pack",
    "read_vocabulary",
    "slide",
    "tokenize_words",
    "truncate",
    "without_padding",
]
