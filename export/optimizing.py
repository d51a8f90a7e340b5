"""What TensorFlow's graph optimizer leaves out for the model inside an export.

A process that loads a graph optimizes each function twice, with whatever calls it and again when it
is called itself, and every pass copies it, with frozen weights if there are any. The passes that
look for memory to save, and those that go through MLIR, find nothing in a model and take most of
the time. The other passes need two rounds: the tanh form of GELU becomes part of its product only
in the second.
"""

from pathlib import Path

import tensorflow as tf
from google.protobuf.message import Message

from bert_tf.compat import NO_INLINE, SavedModel, renew_fingerprint


def spare(folder: Path, trains: bool) -> None:
    """Changes a SavedModel: functions with `APART_ATTRIBUTES` are optimized as said above.

    Where nothing trains, operations forget that they have gradients of their own, which were not
    saved and which TensorFlow would miss.
    """
    path = folder / "saved_model.pb"
    saved = SavedModel.FromString(path.read_bytes())
    options = _options().SerializeToString(deterministic=True)
    library = saved.meta_graphs[0].graph_def.library
    apart = {each.signature.name for each in library.function if NO_INLINE in each.attr}
    for function in library.function:
        for node in function.node_def:
            if not trains:
                node.attr.pop("_gradient_op_type", None)
            # Looking an attribute up would add it.
            if "f" in node.attr and node.attr["f"].func.name in apart:
                node.attr["config_proto"].s = options
    path.write_bytes(saved.SerializeToString(deterministic=True))
    # TensorFlow wrote it of the file as it was.
    renew_fingerprint(str(folder))


def _options() -> Message:
    options = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    rewriting = options.graph_options.rewrite_options
    rewriting.memory_optimization = rewriting.NO_MEM_OPT
    rewriting.disable_tfg_optimizer = True
    rewriting.meta_optimizer_iterations = rewriting.TWO
    return options
