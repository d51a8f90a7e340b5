"""What TensorFlow's graph optimizer is spared of a model with frozen weights.

A process that loads a graph optimizes each function twice, with whatever calls it and again when it
is called itself, and every pass copies it, weights and all. For the model's function one round is
enough; the passes that look for memory to save, and those that go through MLIR, find nothing there
and take most.
"""

from pathlib import Path

from google.protobuf.message import Message
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2, saved_model_pb2
from tensorflow.python.saved_model.fingerprinting_utils import write_fingerprint

# Of a function that is kept apart from its callers, and optimized only when it is called itself
# (tensorflow/core/grappler/optimizers/meta_optimizer.cc).
_APART = "_noinline"
ATTRIBUTES = {_APART: True, "_tf_data_function": True}


def spare(folder: Path) -> None:
    """Changes a SavedModel: functions with `ATTRIBUTES` are optimized as said above."""
    path = folder / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    options = _options().SerializeToString(deterministic=True)
    library = saved.meta_graphs[0].graph_def.library
    apart = {each.signature.name for each in library.function if _APART in each.attr}
    for function in library.function:
        for node in function.node_def:
            # Looking an attribute up would add it.
            if "f" in node.attr and node.attr["f"].func.name in apart:
                node.attr["config_proto"].s = options
    path.write_bytes(saved.SerializeToString(deterministic=True))
    # TensorFlow wrote it of the file as it was.
    write_fingerprint(str(folder))


def _options() -> Message:
    options = config_pb2.ConfigProto(allow_soft_placement=True)
    rewriting = options.graph_options.rewrite_options
    rewriting.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    rewriting.disable_tfg_optimizer = True
    rewriting.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    return options
