"""Finding the tokens of a window that form an answer, as question answering learns it.

Source: google-research/bert, `run_squad.convert_examples_to_features`. That function finds the
pieces of an answer by their text, in the words that hold the answer. If it does not find them, it
takes the whole words. Here the bytes decide: an answer is the pieces that hold any byte of it.
"""

import tensorflow as tf

from bert_tf.text.windows import QuestionWindows


def find_answers(
    windows: QuestionWindows, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The first and last token of the answer in each window: two tensors int32 [windows].

    Both are 0, the position of [CLS], in a window that does not show the whole answer.

    >>> from bert_tf.text import Tokenizer, WindowPreprocessor
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] who the cat sat .".split())
    >>> preprocess = WindowPreprocessor(tokenizer, max_length=8, max_question_length=1)
    >>> windows = preprocess((["Who"], ["The cat sat."]))
    >>> first, last = find_answers(windows, tf.constant([0]), tf.constant([7]))  # "The cat"
    >>> first.numpy().tolist(), last.numpy().tolist()
    ([3], [4])

    Args:
        windows: of `batch` questions.
        starts, ends: int32 [batch], byte range of the answer in its context; -1 for none.
    """
    start, end = (tf.gather(each, windows.rows)[:, None] for each in (starts, ends))
    is_answer = (windows.pieces >= 0) & (windows.starts < end) & (windows.ends > start)
    batch = tf.size(starts)
    none = tf.int32.max
    first = tf.reduce_min(tf.where(is_answer, windows.pieces, none), axis=1)
    first = tf.math.unsorted_segment_min(first, windows.rows, batch)
    last = tf.reduce_max(tf.where(is_answer, windows.pieces, -none), axis=1)
    last = tf.math.unsorted_segment_max(last, windows.rows, batch)
    is_first, is_last = (
        windows.pieces == tf.gather(each, windows.rows)[:, None] for each in (first, last)
    )
    is_whole = tf.reduce_any(is_first, axis=1) & tf.reduce_any(is_last, axis=1)
    return tuple(
        tf.where(is_whole, tf.argmax(each, axis=1, output_type=tf.int32), 0)
        for each in (is_first, is_last)
    )
