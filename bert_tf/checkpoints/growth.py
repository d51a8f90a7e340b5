"""Larger vocabularies: a checkpoint whose word embeddings have rows for further pieces.

The row of a new piece is the mean of the rows of the pieces that the old tokenizer cuts it into,
as is its bias in a masked language model. So training starts from a meaning, not from noise.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.checkpoints.checkpoint import Checkpoint, listed
from bert_tf.checkpoints.description import vocabulary_hash
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.text.tokenizer import Tokenizer

# The ends of our names of the weights with a row for each piece.
_BY_PIECE = ("/word_embeddings", "masked_lm/output_bias")


def with_tokens(checkpoint: Checkpoint, tokens: Sequence[str]) -> Checkpoint:
    """A checkpoint whose tokenizer keeps `tokens` whole in text, with rows for the new ones.

    >>> from bert_tf import Encoder, EncoderConfig, NextSentence
    >>> from bert_tf.checkpoints import reading
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] < > cat".split())
    >>> config = EncoderConfig(8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> NextSentence(Encoder(config), tokenizer).save_checkpoint("checkpoint")
    >>> grown = with_tokens(reading.find("checkpoint"), ["<cat>"])
    >>> grown.encoder.vocab_size, Tokenizer.from_checkpoint(grown).tokenize("a<cat>").numpy()
    (9, array([1, 8], dtype=int32))

    Args:
        checkpoint: the checkpoint.
        tokens: as for `Tokenizer.with_tokens`.

    Raises:
        UserError: as for `Tokenizer.with_tokens`, or the checkpoint has no vocabulary.
    """
    if isinstance(tokens, list | tuple) and not tokens:
        return checkpoint
    old = Tokenizer.from_checkpoint(checkpoint)
    new = old.with_tokens(tokens)
    pieces = new.vocabulary[old.vocab_size :]
    cut = old.tokenize(pieces).to_list() if pieces else []
    grown = with_pieces(checkpoint, old.vocab_size, new, cut)
    known = tuple(token for token in tokens if token not in pieces)
    if not known:
        return grown
    note = f"in the vocabulary already, with their rows as they are: {listed(known)}"
    return dataclasses.replace(grown, notes=(*grown.notes, note))


def with_pieces(
    checkpoint: Checkpoint, known: int, tokenizer: Tokenizer, cut: Sequence[Sequence[int]]
) -> Checkpoint:
    """A checkpoint for `tokenizer`, which has new pieces after the `known` ones of the checkpoint.

    `cut` has, for each new piece, the ids whose rows are averaged. A checkpoint may have more rows
    than pieces, because their number was rounded up; the spare rows are used first.
    """
    description, old = checkpoint.description, checkpoint.tensors
    description.encoder.check_vocabulary(known)
    rows = checkpoint.table.rows(description.model, description.encoder.num_hidden_layers)
    grow = {row.theirs[0] for name, row in rows.items() if name.endswith(_BY_PIECE)}
    grow |= {name for name in old.shapes if name.endswith(_BY_PIECE)}

    size = max(description.encoder.vocab_size, tokenizer.vocab_size)
    shapes = {
        name: (size, *shape[1:]) if name in grow else shape for name, shape in old.shapes.items()
    }

    def read(name: str) -> np.ndarray:
        array = old.read(name)
        if name not in grow or not cut:
            return array
        means = np.stack([array[ids].astype(np.float32).mean(axis=0) for ids in map(list, cut)])
        if array.dtype.kind in "iu":  # `Checkpoint` refuses integer weights later
            means = means.astype(array.dtype)
        return np.concatenate([array[:known], means, array[known + len(cut) :]])

    new = listed(tokenizer.vocabulary[known:])
    note = f"new rows in the word embeddings, each the mean of the rows of its pieces: {new}"
    settings = tokenizer.settings
    return dataclasses.replace(
        checkpoint,
        description=dataclasses.replace(
            description,
            encoder=dataclasses.replace(description.encoder, vocab_size=size),
            lower_case=settings.lower_case,
            tokenizer=settings.besides_casing,
            vocabulary=vocabulary_hash(tokenizer.vocabulary),
        ),
        tensors=Tensors(shapes, read),
        vocabulary_there=lambda: tokenizer.vocabulary,
        notes=(*checkpoint.notes, note) if cut else checkpoint.notes,
    )
