"""Random weights and a vocabulary, made once and read by every contestant."""

import itertools
import string
from pathlib import Path
from typing import Any

from benchmarks.speed.works import SHAPES

VOCABULARY = 30522
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def make_weights(folder: Path, job: str, shape: str, vocabulary: Path | None) -> None:
    """Writes a checkpoint of the shape, with the head for the job, as transformers does.

    Args:
        folder: where to.
        job: the job of the work; pre-training has other heads than the rest.
        shape: one of `SHAPES`.
        vocabulary: one of 30,522 pieces; None makes one up. Texts are made of its pieces, so that
            tokenizers have the same work with either.
    """
    import torch
    import transformers

    layers, hidden, heads = SHAPES[shape]
    transformers.utils.logging.disable_progress_bar()
    config = transformers.BertConfig(
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        num_labels=2,
    )
    pretrains = job == "pretrain"
    kind = (
        transformers.BertForPreTraining if pretrains else transformers.BertForSequenceClassification
    )
    torch.manual_seed(0)
    model = kind(config)
    spread(model)
    model.save_pretrained(folder)
    path = folder / "vocab.txt"
    text = (
        "\n".join(_pieces()) + "\n"
        if vocabulary is None
        else vocabulary.read_text(encoding="utf-8")
    )
    path.write_text(text, encoding="utf-8")
    transformers.BertTokenizerFast(str(path)).save_pretrained(folder)


def spread(model: Any) -> None:
    """Adds random numbers of standard deviation 0.02 to the constant vectors of a PyTorch model.

    These are the initial biases of zero and scales of one. In a frozen export, TensorFlow would
    leave out an addition of zero, and would then not fuse the product before it with the GELU after
    it. The export would be measured slower than with the weights of any trained model.
    """
    import torch

    with torch.no_grad():
        for each in model.parameters():
            if each.ndim == 1 and (each == each[0]).all():
                each.add_(0.02 * torch.randn_like(each))


def _pieces() -> list[str]:
    """Special pieces, single letters, those that continue a word, and words of three letters."""
    letters = string.ascii_lowercase
    words = ("".join(each) for n in (3, 4) for each in itertools.product(letters, repeat=n))
    pieces = [*_SPECIAL, *letters, *(f"##{letter}" for letter in letters), *string.punctuation]
    return pieces + list(itertools.islice(words, VOCABULARY - len(pieces)))
