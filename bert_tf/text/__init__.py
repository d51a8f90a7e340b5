"""Strings to token ids inside the graph: cleaning, WordPiece, offsets, packing, windows."""

from bert_tf.text.lite_tokenizer import LiteTokenizer
from bert_tf.text.packing import Features, Preprocessor, pack, truncate
from bert_tf.text.tokenizer import Pieces, Tokenizer
from bert_tf.text.windows import QuestionWindows, WindowPreprocessor, slide
from bert_tf.text.words import WordPreprocessor, WordWindows, tokenize_words, without_padding

__all__ = [
    "Features",
    "LiteTokenizer",
    "Pieces",
    "Preprocessor",
    "QuestionWindows",
    "Tokenizer",
    "WindowPreprocessor",
    "WordPreprocessor",
    "WordWindows",
    "pack",
    "slide",
    "tokenize_words",
    "truncate",
    "without_padding",
]
