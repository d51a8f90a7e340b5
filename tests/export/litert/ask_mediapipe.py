"""Asks MediaPipe, in an environment that has it and not bert_tf.

Reads JSON from standard input: a list of [task, file, texts], with the task "classify", "embed" or
"describe". Prints a JSON list of answers; a request that it refuses gives {"error": message}.
"""

import json
import sys

from mediapipe.tasks.metadata import metadata_schema_py_generated as metadata_schema
from mediapipe.tasks.metadata import schema_py_generated as schema
from mediapipe.tasks.python import text
from mediapipe.tasks.python.core.base_options import BaseOptions


def classify(path, texts):
    options = text.TextClassifierOptions(base_options=BaseOptions(model_asset_path=path))
    with text.TextClassifier.create_from_options(options) as classifier:
        found = [classifier.classify(each).classifications for each in texts]
    # The first output has the probabilities; the second, if there is one, the scores behind them.
    return [{each.category_name: each.score for each in heads[0].categories} for heads in found]


def embed(path, texts):
    options = text.TextEmbedderOptions(base_options=BaseOptions(model_asset_path=path))
    with text.TextEmbedder.create_from_options(options) as embedder:
        found = [embedder.embed(each).embeddings for each in texts]
    return [head.embedding.tolist() for heads in found for head in heads]


def plain(value):
    """An object of generated code as lists and dicts, without what is not set."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if hasattr(value, "__dict__"):
        return {key: plain(each) for key, each in vars(value).items() if each not in (None, 0, [])}
    return value.decode() if isinstance(value, bytes) else value


def describe(path, texts):
    with open(path, "rb") as file:
        model = schema.Model.GetRootAs(file.read())
    (index,) = [
        each.Buffer()
        for each in map(model.Metadata, range(model.MetadataLength()))
        if each.Name() == b"TFLITE_METADATA"
    ]
    content = model.Buffers(index).DataAsNumpy().tobytes()
    root = metadata_schema.ModelMetadata.GetRootAs(content)
    return plain(metadata_schema.ModelMetadataT.InitFromObj(root))


TASKS = {"classify": classify, "embed": embed, "describe": describe}
answers = []
for task, path, texts in json.load(sys.stdin):
    try:
        answers.append(TASKS[task](path, texts))
    # MediaPipe fails with many classes of errors.
    except Exception as error:
        answers.append({"error": str(error) or type(error).__name__})
print(json.dumps(answers))
