"""Exports hold only ops of TensorFlow's core and of the tensorflow-text that servers link."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from tests.export.conftest import cases
from tests.export.requests import meta_graph

# The official image of TensorFlow Serving has these ops, but none that trims.
TEXT_OPS = {
    "CaseFoldUTF8",
    "FastBertNormalize",
    "FastWordpieceTokenizeWithOffsets",
    "FindSourceOffsets",
    "NormalizeUTF8",
    "NormalizeUTF8WithOffsetsMap",
    "RegexSplitWithOffsets",
    "SentenceFragmentsV2",
    "TFText>FastWordpieceDetokenize",
    "TFText>Utf8Binarize",
    "TFText>WhitespaceTokenizeWithOffsetsV2",
    "UnicodeScriptTokenizeWithOffsets",
    "WhitespaceTokenizeWithOffsets",
    "WordpieceTokenizeWithOffsets",
}
# Core ops that need the process that made them, a compiler, or a table to be filled first.
BANNED = ("PyFunc", "Xla", "Table", "Lookup")

CASES = cases(("classification", {}), ("classification", {"freeze": True}), bfloat16=True)


def graphs(folder: Path) -> list[tf.compat.v1.GraphDef]:
    """The graphs of all SavedModels in a folder."""
    return [meta_graph(file.parent).graph_def for file in folder.rglob("saved_model.pb")]


def nodes(graph: tf.compat.v1.GraphDef) -> Iterator[node_def_pb2.NodeDef]:
    """All nodes, those of the functions among them."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


@pytest.mark.parametrize(("family", "settings"), CASES)
def test_a_server_knows_every_op(exported, family, settings):
    found = graphs(exported(family, **settings))
    assert len(found) == (2 if family == "hub" else 1)
    for graph in found:
        functions = {function.signature.name for function in graph.library.function}
        ops = {node.op for node in nodes(graph)} - functions
        # `raw_ops` is written when TensorFlow is built, so ops of other libraries are not in it.
        strange = {op for op in ops if not hasattr(tf.raw_ops, op)} - TEXT_OPS
        assert not strange
        assert not [op for op in ops if any(word in op for word in BANNED)]
        assert len(ops) > 50


@pytest.mark.parametrize(("family", "settings"), CASES)
def test_nothing_must_be_compiled(exported, family, settings):
    for graph in graphs(exported(family, **settings)):
        for each in (*nodes(graph), *graph.library.function):
            assert not each.attr["_XlaMustCompile"].b
            assert "_XlaCompile" not in each.attr


def test_the_lists_of_ops_match_tensorflow():
    assert not [op for op in TEXT_OPS if hasattr(tf.raw_ops, op)]
    for word in BANNED:
        assert any(word in op for op in dir(tf.raw_ops)), word
