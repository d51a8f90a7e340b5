"""Every family answers every text, in batches of any size, and what it says is possible."""

import random

import numpy as np
import pytest

from tests.export import odd_texts
from tests.export.conftest import tasks
from tests.export.requests import assert_same


@pytest.fixture
def signatures(loaded, models):
    """Name -> (signature, its inputs, labels) of a family's export."""

    def of(family):
        labels = getattr(models(family), "labels", ())
        return {
            name: (each, each.structured_input_signature[1], [label.encode() for label in labels])
            for name, each in loaded(family).signatures.items()
        }

    return of


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", tasks("classification"))
def test_hard_texts_are_answered(signatures, family):
    for signature, specs, labels in signatures(family).values():
        rows = odd_texts.hard_rows(specs)
        answers = odd_texts.ask(signature, rows)
        odd_texts.check(rows, answers, labels)
        # The other texts of a batch do not change the answer to a text.
        for row in (4, 9):
            alone = {name: values[row : row + 1] for name, values in rows.items()}
            found = odd_texts.ask(signature, alone)
            odd_texts.check(alone, found, labels)
            for name, value in found.items():
                expected = answers[name][row : row + 1]
                here = tuple(slice(size) for size in value.shape)
                assert_same({name: value}, {name: expected[here]}, tolerance=1e-5)


@pytest.mark.parametrize("family", tasks("classification"))
def test_a_batch_may_be_empty(signatures, family):
    for signature, specs, labels in signatures(family).values():
        for width in (0, 3):
            rows = {
                name: np.zeros([0] if spec.shape.rank == 1 else [0, width], object)
                for name, spec in specs.items()
            }
            answers = odd_texts.ask(signature, rows)
            odd_texts.check(rows, answers, labels)


@pytest.mark.parametrize("family", tasks())
def test_a_megabyte_is_answered(signatures, family):
    parts = [b"a cat [MASK] ", b"!", "中".encode(), b"x", b"\xff"]
    long = [part * (2**20 // len(part)) for part in parts]
    for signature, specs, labels in signatures(family).values():
        for place, text in enumerate(long):
            # Once under each input, once under all.
            for chosen in [[name] for name in specs] + [list(specs)]:
                rows = {
                    name: np.full([2] * spec.shape.rank, b"the cat", object)
                    for name, spec in specs.items()
                }
                for name in chosen:
                    rows[name].flat[place % 2] = text
                odd_texts.check(rows, odd_texts.ask(signature, rows), labels)


@pytest.mark.parametrize("family", tasks())
def test_many_random_texts_are_answered(signatures, family):
    source = random.Random(0)
    for signature, specs, labels in signatures(family).values():
        for count in (1000, *[100] * 100):
            rows = odd_texts.random_rows(source, specs, count)
            odd_texts.check(rows, odd_texts.ask(signature, rows), labels)
