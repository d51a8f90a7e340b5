"""Checkpoints of the Hugging Face Hub: from the cache without a network, or a clear line."""

import errno
import fnmatch
import json
import shutil
import sys
import types
from pathlib import Path
from unittest import mock

import pytest

from bert_tf.checkpoints import download, reading
from tests.checkpoints import tiny_embedders
from tests.checkpoints import tiny_models as tiny

FOLDER = tiny.FIXTURES / "huggingface_heads" / "BertModel"


class FakeHub(types.ModuleType):
    """Stands for huggingface_hub with one repository, org/name; records the requests.

    Its files are side by side, or as they are in the folder `root`.
    """

    def __init__(self, files, cache, error=None, root=None):
        super().__init__("huggingface_hub")
        self.root = root
        self.files, self.cache, self.error, self.asked = files, cache, error, []
        kinds = (
            "GatedRepoError RepositoryNotFoundError RevisionNotFoundError LocalEntryNotFoundError "
            "OfflineModeIsEnabled HTTPError HFValidationError"
        ).split()
        self.errors = types.SimpleNamespace(
            **{kind: type(kind, (Exception,), {}) for kind in kinds}
        )

    def snapshot_download(self, repository, revision, allow_patterns):
        self.asked.append((repository, revision))
        if self.error:
            raise getattr(self.errors, self.error)("first line\nsecond line")
        for file in self.files:
            name = str(file.relative_to(self.root)) if self.root else file.name
            if any(fnmatch.fnmatch(name, pattern) for pattern in allow_patterns):
                (self.cache / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, self.cache / name)
        return str(self.cache)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    def install(files, error=None, root=None):
        fake = FakeHub(files, tmp_path, error, root)
        monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
        return fake

    return install


def test_a_repository_is_fetched_and_read(hub):
    fake = hub(list(FOLDER.iterdir()))

    found = reading.find("hf://org/name@v1.0")

    assert fake.asked == [("org/name", "v1.0")]
    assert found.description.model == "Encoder"
    assert found.read_vocabulary() == tiny.PIECES
    assert not (found.folder / "expected.npz").exists()


def test_a_preset_of_keras_hub_is_fetched_and_read(hub):
    root = tiny.FIXTURES / "keras_hub" / "BertTextClassifier"
    hub([path for path in root.rglob("*") if path.is_file()], root=root)

    found = reading.find("org/name")
    assert (found.description.model, found.read_vocabulary()) == ("TextClassifier", tiny.PIECES)


def test_torch_weights_are_fetched_only_where_there_are_no_others(hub, tmp_path):
    torch_file = tmp_path / "from" / "pytorch_model.bin"
    torch_file.parent.mkdir()
    torch_file.write_bytes(b"")

    fake = hub([*FOLDER.iterdir(), torch_file])
    assert not (download.fetch("hf://org/name") / "pytorch_model.bin").exists()
    assert len(fake.asked) == 1

    (tmp_path / "model.safetensors").unlink()
    hub([FOLDER / "config.json", torch_file])
    assert (download.fetch("hf://org/name") / "pytorch_model.bin").exists()


@pytest.mark.parametrize("name", ["BertModel", "sharded"])
def test_weights_of_tensorflow_classes_are_fetched_before_those_of_torch(hub, tmp_path, name):
    torch_file = tmp_path / "from" / "pytorch_model.bin"
    torch_file.parent.mkdir()
    torch_file.write_bytes(b"")
    files = [*(tiny.FIXTURES / "huggingface_tf" / name).iterdir(), torch_file]
    fake = hub(files)

    found = reading.find("org/name")

    assert len(fake.asked) == 2
    assert found.description.model in ("Encoder", "TextClassifier")
    assert not (found.folder / "pytorch_model.bin").exists()


@pytest.mark.parametrize("transformer", ["", "0_Transformer"])
@pytest.mark.parametrize("is_torch", [False, True])
def test_the_files_of_sentence_transformers_modules_are_fetched(
    hub, tmp_path_factory, transformer, is_torch
):
    root = tiny_embedders.write(tmp_path_factory.mktemp("from"), "dense", transformer)
    modules = json.loads((root / "modules.json").read_text())
    modules[0]["path"] = transformer
    (root / "modules.json").write_text(json.dumps(modules))
    (root / "onnx").mkdir()
    for name in ("onnx/config.json", "README.md", "1_Pooling/other.bin"):
        (root / name).write_text("{}")
    if is_torch:
        # The weights of a dense layer are often those of torch alone.
        (root / "2_Dense" / "model.safetensors").rename(root / "2_Dense" / "pytorch_model.bin")
        (root / transformer / "pytorch_model.bin").write_text("the same as in model.safetensors")
    files = [file for file in root.rglob("*") if file.is_file()]
    fake = hub(files, root=root)

    folder = download.fetch("org/name")

    # Those of TensorFlow's classes are looked for in between.
    assert len(fake.asked) == (3 if is_torch else 1)
    fetched = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    left_out = {"onnx/config.json", "1_Pooling/other.bin"}
    left_out |= {str(Path(transformer, "pytorch_model.bin"))} if is_torch else set()
    assert {str(file.relative_to(root)) for file in files} - fetched == left_out
    if not is_torch:
        assert reading.find("hf://org/name").description.head["dense"][1]["units"] == 3


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("GatedRepoError", "is a gated repository; request access on its page on the"),
        ("RepositoryNotFoundError", "is not on the Hugging Face Hub; check its spelling"),
        ("RevisionNotFoundError", "is not on the Hugging Face Hub"),
        ("LocalEntryNotFoundError", "not in the cache, and the Hugging Face Hub cannot be reached"),
        ("OfflineModeIsEnabled", "not in the cache, and the Hugging Face Hub cannot be reached"),
        ("HTTPError", r"cannot be downloaded \(first line\); try again later"),
        ("HFValidationError", r"cannot be downloaded \(first line\); try again later"),
    ],
)
def test_errors_are_reported_in_one_line(hub, error, told):
    hub([], error)

    tiny.refused(told, reading.find, "hf://org/name")


@pytest.mark.parametrize("address", ["hf://", "hf://a/b/c", "hf://org/name@", "hf://org/na me"])
def test_a_malformed_address_is_told(address):
    tiny.refused("is not of the form hf://org/name or hf://org/name@rev", reading.find, address)


def test_without_huggingface_hub_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    told = r"requires the extra hub .*pip install .huggingface_hub<"
    tiny.refused(told, reading.find, "hf://org/name")


@pytest.fixture
def real_hub(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants", reason="the extra hub is missing")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("real_hub")
def test_the_cache_of_huggingface_hub_is_used_without_a_network(tmp_path):
    repository = tmp_path / "models--org--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    shutil.copytree(FOLDER, repository / "snapshots" / ("0" * 40))

    assert reading.find("hf://org/name").description.model == "Encoder"


@pytest.mark.usefixtures("real_hub")
def test_what_huggingface_hub_has_not_cached_is_told_in_one_line():
    told = "not in the cache, and the Hugging Face Hub cannot be"
    tiny.refused(told, reading.find, "hf://org/name")


@pytest.mark.usefixtures("real_hub")
def test_a_full_disk_is_reported_with_the_path_of_the_cache(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    error = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(hub, "snapshot_download", mock.Mock(side_effect=error))
    tiny.refused(
        "disk is full while downloading hf://org/name; .*HF_HOME", reading.find, "hf://org/name"
    )


@pytest.mark.usefixtures("real_hub")
@pytest.mark.parametrize("kind", ["ProxyError", "ReadError", "RemoteProtocolError"])
def test_errors_of_its_http_client_are_reported_in_one_line(monkeypatch, kind):
    hub, client = pytest.importorskip("huggingface_hub"), pytest.importorskip("httpx2")
    error = getattr(client, kind)("the line is dead")
    monkeypatch.setattr(hub, "snapshot_download", mock.Mock(side_effect=error))
    told = r"cannot be downloaded \(the line is dead\); try again later"
    tiny.refused(told, reading.find, "hf://org/name")
