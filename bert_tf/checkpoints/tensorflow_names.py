"""The names and the layout that the TensorFlow classes of transformers 4 gave to weights.

They stand in `tf_model.h5`, and in `model.safetensors` if `save_pretrained` of a TensorFlow class
wrote it. Names: `transformers/models/bert/modeling_tf_bert.py` of version 4.
"""

import re

from bert_tf.checkpoints.tensors import Tensors

# The names of the model and of its layers, which stand before a weight's own, depend on the class.
_NAME = re.compile(
    r"(?:.*/)?((?:bert/(?:embeddings|encoder|pooler)|mlm___cls|nsp___cls|classifier|qa_outputs)/.+)"
    r":0"
)
_PARTS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}


def torch_name(name: str) -> str | None:
    """The name of the same weight in torch; None if no such class has it.

    >>> torch_name("bert/tf_bert_model/bert/encoder/layer_._0/attention/self/key/kernel:0")
    'bert.encoder.layer.0.attention.self.key.weight'
    >>> torch_name("mlm___cls/tf_bert_for_masked_lm/mlm___cls/predictions/bias:0")
    'cls.predictions.bias'
    """
    match = _NAME.fullmatch(name)
    if not match:
        return None
    *owners, part = match[1].split("/")
    # "___" stands between the parts of one name, "_._" between a list and a number.
    owners = [re.sub(r"^.*___", "", owner).replace("_._", ".") for owner in owners]
    return ".".join([*owners, _PARTS.get(part, part)])


def in_torch_layout(found: Tensors) -> Tensors:
    """The tensors under torch's names, with kernels as [output, input]; others stay as they are.

    A weight that two layers share is in a file twice. The first counts.
    """
    names: dict[str, str] = {}
    for name in found.shapes:
        names.setdefault(torch_name(name) or name, name)
    kernels = {new for new, old in names.items() if new != old and old.endswith("/kernel:0")}
    renamed = found.renamed(names)
    shapes = {
        name: shape[::-1] if name in kernels else shape for name, shape in renamed.shapes.items()
    }
    return Tensors(
        shapes,
        lambda name: renamed.read(name).T if name in kernels else renamed.read(name),
    )
