"""The server's configurations are the messages that they should be."""

from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow_serving.config import model_server_config_pb2

SERVING = Path(__file__).parents[2] / "serving"
_FIELD = descriptor_pb2.FieldDescriptorProto
_INT, _BOOL = "google.protobuf.Int64Value", "google.protobuf.BoolValue"


def message(name: str, fields: list[tuple[str, int, int, str]], inner: dict | None = None):
    """A class of messages that tensorflow-serving-api does not have."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{name}.proto", package="serving_tests", syntax="proto3"
    )
    file.dependency.append("google/protobuf/wrappers.proto")
    for each, own in {name: fields, **(inner or {})}.items():
        made = file.message_type.add(name=each)
        for field, number, kind, of in own:
            made.field.add(
                name=field, number=number, type=kind, type_name=of, label=_FIELD.LABEL_OPTIONAL
            )
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"serving_tests.{name}"))


@pytest.fixture(scope="module")
def batching():
    """Source: tensorflow/serving, servables/tensorflow/session_bundle_config.proto."""
    wrapped = [
        ("max_batch_size", 1, _INT),
        ("batch_timeout_micros", 2, _INT),
        ("max_enqueued_batches", 3, _INT),
        ("num_batch_threads", 4, _INT),
        ("enable_large_batch_splitting", 8, _BOOL),
        ("max_execution_batch_size", 9, _INT),
    ]
    fields = [(name, number, _FIELD.TYPE_MESSAGE, f".{of}") for name, number, of in wrapped]
    fields += [("pad_variable_length_inputs", 7, _FIELD.TYPE_BOOL, None)]
    made = message("BatchingParameters", fields)
    return text_format.Parse((SERVING / "batching.config").read_text(), made())


def test_requests_are_batched(batching):
    assert batching.max_batch_size.value > 1
    assert batching.batch_timeout_micros.value >= 0
    assert batching.max_enqueued_batches.value > 0
    assert batching.num_batch_threads.value > 0


def test_nothing_is_padded_or_split_by_the_server(batching):
    """It would pad with values of others, and cannot join outputs of different widths."""
    assert not batching.pad_variable_length_inputs
    assert not batching.enable_large_batch_splitting.value
    assert not batching.HasField("max_execution_batch_size")


def test_labels_are_of_versions_that_are_loaded():
    config = text_format.Parse(
        (SERVING / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    models = {model.name: model for model in config.model_config_list.config}
    assert models.keys() == {"reviews", "questions"}
    for name, model in models.items():
        assert model.base_path == f"/models/{name}" and model.model_platform == "tensorflow"
    reviews = models["reviews"]
    assert dict(reviews.version_labels) == {"stable": 1, "canary": 2}
    assert set(reviews.version_labels.values()) == set(
        reviews.model_version_policy.specific.versions
    )
    assert models["questions"].model_version_policy.latest.num_versions == 1


def test_metrics_have_the_path_that_the_page_names():
    inner = {
        "PrometheusConfig": [
            ("enable", 1, _FIELD.TYPE_BOOL, None),
            ("path", 2, _FIELD.TYPE_STRING, None),
        ]
    }
    of = ".serving_tests.PrometheusConfig"
    made = message("MonitoringConfig", [("prometheus_config", 1, _FIELD.TYPE_MESSAGE, of)], inner)
    config = text_format.Parse((SERVING / "monitoring.config").read_text(), made())
    assert config.prometheus_config.enable
    page = (SERVING.parent / "docs" / "how_to" / "serving.md").read_text()
    assert f"metrics_path: {config.prometheus_config.path}" in page
