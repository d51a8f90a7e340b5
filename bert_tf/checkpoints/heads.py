"""The heads of task models, and how the formats of other programs store them.

Each task family states its head. Families lie above checkpoints, so the package adds their registry
to `SOURCES`, where the formats look up heads. Callers cannot pass the heads, since encoders,
tokenizers and runs open checkpoints without knowing any family.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

ENCODER, PRETRAINER = "Encoder", "PreTrainer"
EMBEDDER, CROSS_ENCODER = "SentenceTransformer", "CrossEncoder"
"""The kinds of models in sentence-transformers."""
MASKED_LM, NEXT_SENTENCE = "masked_lm", "next_sentence"
"""The heads of pre-training, by our names of their layers."""


class Place(NamedTuple):
    """Where another program has the dense layer of a head.

    Attributes:
        prefix: what its names of the layer's weights begin with.
        reader: the program's class or script with such a head. "" if it has none: then weights
            alone do not show that a checkpoint has this head.
        attributes: for Model Garden, the attributes that lead from a model to the layer, with "/"
            between them.
    """

    prefix: str
    reader: str = ""
    attributes: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """The head of a task's model. `Head()` is a head that only bert_tf reads.

    Attributes:
        layer: our name of the dense layer that other programs have too; "" if there is none.
        places: format, as in `conversion.save` -> where that format has the layer.
        arguments: which of the model's arguments "num_classes" and "dropout" the other formats
            store.
        outputs: 1 if the model gives a number, for which transformers writes one label. 0
            otherwise.
        problem: the `problem_type` of transformers; "" if it is not written.
        pools: whether the head reads the pooled output.
        label_layers: our names of those layers that have an output for each label.
        pretraining: which of the heads of pre-training it is: `MASKED_LM`, `NEXT_SENTENCE`.
        takes: other classes of models whose heads have the same weights with the same meaning, so
            that training can start from them.
        sentence_transformers: `EMBEDDER` or `CROSS_ENCODER` if that library has such models.
    """

    layer: str = ""
    places: Mapping[str, Place] = dataclasses.field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    outputs: int = 0
    problem: str = ""
    pools: bool = False
    label_layers: tuple[str, ...] = ("classifier",)
    pretraining: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    sentence_transformers: str = ""

    def takes_from(self, model: str) -> bool:
        """Whether training can start from the head of another class of models."""
        return model in self.takes or not {*self.pretraining}.isdisjoint(of(model).pretraining)


SOURCES: list[Callable[[], Mapping[str, Head]]] = [
    lambda: {PRETRAINER: Head(pretraining=(MASKED_LM, NEXT_SENTENCE))}
]
"""Functions that return heads by the names of their models' classes."""


def known() -> dict[str, Head]:
    """All heads, by the names of their models' classes."""
    return {model: head for source in SOURCES for model, head in source().items()}


def of(model: str) -> Head:
    """The head of a class of models."""
    return known().get(model, Head())


def chosen(
    found: Mapping[str, int], problem: str = "", library: str = "", dropout: float | None = None
) -> tuple[str, dict[str, Any]]:
    """The class of the model that some weights are from, and the arguments of its head.

    Several classes may share a layer, such as those that classify or rate texts; `found` maps
    them to the layer's number of outputs. `library` is a kind of model in sentence-transformers.
    """
    if not found:
        return ENCODER, {}
    # A class fits best if the problem type is its own. A class for a fixed number of outputs comes
    # before a class for any number.
    known_heads = {model: of(model) for model in found}
    exact = {head.problem for model, head in known_heads.items() if head.outputs == found[model]}
    best, others = [], []
    for model, head in known_heads.items():
        if problem and problem not in exact and (head.outputs, head.problem) == (0, problem):
            best.append(model)
        if (head.outputs, head.sentence_transformers) == (found[model], library):
            others.append(model)
    model = [*best, *others, *found][0]
    values = {"num_classes": found[model], "dropout": dropout}
    return model, {name: values[name] for name in known_heads[model].arguments}
