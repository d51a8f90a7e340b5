"""Names, versions and labels of models, and how they come and go while the server runs."""

import contextlib
import re
import shutil
import threading
import time
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from bert_tf.errors import UserError
from bert_tf.serve import models
from bert_tf.serve.batching import BatchQueue
from bert_tf.serve.models import Models, NotFound, NotReady, Servable, Source, sources
from tests.serve import served

pytestmark = pytest.mark.end_to_end

CONFIGURATION = Path(__file__).parents[2] / "serving" / "models.config"
ROW = {"instances": [1.0]}


@pytest.fixture
def half(exports, tmp_path):
    """A folder of one version, 1, that tests may change."""
    shutil.copytree(exports["half_plus_two"] / "123", tmp_path / "half" / "1")
    return tmp_path / "half"


@pytest.fixture
def watched(half, monkeypatch):
    """A server that looks for new versions often, and its client."""
    monkeypatch.setattr(models, "_POLL", 0.02)
    server = served.loaded({"half": half})
    thread = threading.Thread(target=server.models.watch, daemon=True)
    thread.start()
    yield server, TestClient(server.app([]), "http://localhost")
    server.close()
    thread.join()


def states(server):
    return {int(each["version"]): each["state"] for each in server.models.status("half")}


def until(server, expected):
    """Returns when the versions of the model are in these states."""
    for _ in range(3000):
        if states(server) == expected:
            return
        time.sleep(0.01)
    raise AssertionError(f"{states(server)}, not {expected}")


def damaged(folder, version):
    """A version whose graph is cut off."""
    shutil.copytree(folder / "1", folder.parent / "new")
    graph = folder.parent / "new" / "saved_model.pb"
    graph.write_bytes(graph.read_bytes()[:500])
    (folder.parent / "new").rename(folder / str(version))
    return folder / str(version) / "saved_model.pb"


def test_names_are_those_of_folders_unless_they_are_given(exports):
    half = exports["half_plus_two"]
    given = [str(half), f"{half}/", str(half / "123"), f"a-b.c={half}", "org/model", "x.keras"]
    names = [sources([each])[0].name for each in given]
    assert names == ["half_plus_two"] * 3 + ["a-b.c", "model", "x"]
    assert [*Source("a", str(half)).versions()] == [123]
    assert [*Source("a", str(half / "123")).versions()] == [123]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a/x", "b/x"], "a/x and b/x would both be called x; name one of them, as in NAME=b/x"),
        (["m=a", "m=b"], "a and b would both be called m"),
        (["model.tflite"], "model.tflite is a LiteRT file"),
        (["m=model.tflite"], "model.tflite is a LiteRT file"),
        (["a b=model"], "'a b' cannot be the name of a model"),
        (["a:b=model"], "cannot be the name"),
        (["s3://b/a=1/x", "c/x"], "s3://b/a=1/x and c/x would both be called x"),
        (["no.config"], "no.config cannot be read as a ModelServerConfig"),
    ],
)
def test_arguments_that_are_refused(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        sources(given)


def test_the_configuration_of_the_repository_serves_versions_and_labels(half, exports, tmp_path):
    shutil.copytree(half / "1", half / "2")
    shutil.copytree(half / "1", half / "3")
    text = CONFIGURATION.read_text().replace("/models/reviews", str(half))
    text = text.replace("/models/questions", str(exports["half_plus_two"]))
    path = tmp_path / "models.config"
    path.write_text(text)
    reviews, questions = sources([str(path)])
    assert (reviews.labels, reviews.numbers) == ({"stable": 1, "canary": 2}, (1, 2))
    assert questions == Source("questions", str(exports["half_plus_two"]))
    server = served.Server([reviews, questions])
    server.models.load()
    client = TestClient(server.app([]), "http://localhost")
    found = client.get("/v1/models/reviews").json()["model_version_status"]
    assert [each["version"] for each in found] == ["2", "1"]
    for place in ("", "/labels/stable", "/labels/canary", "/versions/1", "/versions/2"):
        answer = client.post(f"/v1/models/reviews{place}:predict", json=ROW)
        assert answer.json() == {"predictions": [2.5]}
    label = client.get("/v1/models/reviews/labels/canary").json()["model_version_status"]
    assert [each["version"] for each in label] == ["2"]
    for place in ("/labels/other", "/versions/3"):
        assert client.post(f"/v1/models/reviews{place}:predict", json=ROW).status_code == 404
    server.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no models"),
        ("model_config_list { config { nome: 'a' } }", "cannot be read as a ModelServerConfig"),
        ("\xff", "cannot be read as a ModelServerConfig"),
    ],
)
def test_configurations_that_are_refused(tmp_path, text, message):
    (tmp_path / "a.config").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=message):
        sources([str(tmp_path / "a.config")])


def test_policies_of_versions(tmp_path, half):
    for number in (2, 5, 10):
        shutil.copytree(half / "1", half / str(number))
    (half / "no_number").mkdir()
    text = "model_config_list {{ config {{ name: 'a' base_path: '{}' {} }} }}"
    for policy, expected in (
        ("", [10]),
        ("model_version_policy { latest { num_versions: 2 } }", [5, 10]),
        ("model_version_policy { all {} }", [1, 2, 5, 10]),
        ("model_version_policy { specific { versions: 2 versions: 7 } }", [2]),
    ):
        (tmp_path / "a.config").write_text(text.format(half, policy))
        (source,) = sources([str(tmp_path / "a.config")])
        assert sorted(source.versions()) == expected


def test_a_new_version_takes_the_place_of_the_old_one_without_a_failed_request(watched, half):
    server, _ = watched
    with served.running(server) as url, contextlib.ExitStack() as stack:
        stop, found = threading.Event(), []

        def ask():
            with httpx.Client() as client:
                while not stop.is_set():
                    found.append(client.post(f"{url}/v1/models/half:predict", json=ROW, timeout=60))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        stack.callback(lambda: (stop.set(), [each.join() for each in threads]))
        for thread in threads:
            thread.start()
        for number in (2, 3):
            shutil.copytree(half / "1", half.parent / "new")
            (half.parent / "new").rename(half / str(number))
            until(server, dict.fromkeys(range(1, number), "END") | {number: "AVAILABLE"})
        asked = len(found)
        while len(found) < asked + 8:
            time.sleep(0.01)
    assert all(each.json() == {"predictions": [2.5]} for each in found)
    assert server.models.find("half").number == 3
    with pytest.raises(NotFound, match=r"Specific\(half, 1\)"):
        server.models.find("half", 1)


def test_a_version_of_a_task_may_be_unloaded_while_python_answers(exports):
    server = served.loaded({"reviews": exports["reviews"]})
    known = server.models._versions["reviews"]
    client, old = TestClient(server.app([]), "http://localhost"), known[1].servable
    old.queue.close()  # as while another version takes its place
    newer = Servable("reviews", 2, exports["reviews"] / "1", server.models._queue)
    finds = iter([old, newer, old, newer])
    server.models.find = lambda *_: next(finds)
    answer = client.post("/predict", json={"model": "reviews", "inputs": [{"text": "a"}]})
    assert (answer.status_code, answer.json()["version"]) == (200, 2)
    answer = client.post("/v1/models/reviews:predict", json={"instances": ["a"]})
    assert answer.status_code == 200
    newer.queue.close()
    server.models.__dict__.pop("find")
    server.close()


def test_a_damaged_version_leaves_the_old_one_and_is_tried_again_when_it_changes(watched, half):
    server, client = watched
    graph = damaged(half, 2)
    until(server, {1: "AVAILABLE", 2: "END"})
    found = client.get("/v1/models/half/versions/2").json()["model_version_status"][0]["status"]
    assert found["error_code"] == "UNKNOWN" and "SavedModel is damaged" in found["error_message"]
    answer = client.post("/v1/models/half:predict", json=ROW)
    assert answer.json() == {"predictions": [2.5]}
    assert client.post("/v1/models/half/versions/2:predict", json=ROW).status_code == 404
    assert client.get("/healthz").status_code == 200
    graph.write_bytes((half / "1" / "saved_model.pb").read_bytes())
    until(server, {1: "END", 2: "AVAILABLE"})


def test_a_version_that_fails_in_any_way_does_not_end_the_watch(watched, half, monkeypatch):
    server, _ = watched
    with monkeypatch.context() as patched:
        patched.setattr(models.FrozenTask, "of", lambda saved: 1 / 0)
        shutil.copytree(half / "1", half / "2")
        until(server, {1: "AVAILABLE", 2: "END"})
    (found,) = server.models.status("half", 2)
    assert "ZeroDivisionError" in found["status"]["error_message"]
    shutil.copytree(half / "1", half / "3")
    until(server, {1: "END", 2: "END", 3: "AVAILABLE"})


def test_versions_in_a_bucket_are_found_after_the_store_has_failed(s3, half, monkeypatch, caplog):
    s3.put_folder(half / "1", "models/half/1")
    monkeypatch.setattr(models, "_POLL", 0.02)
    server = served.loaded({"half": f"{s3.address}/models/half"})
    thread = threading.Thread(target=server.models.watch, daemon=True)
    thread.start()
    until(server, {1: "AVAILABLE"})
    s3.proxy.fault("expired", "GET", times=10_000)
    while "check the credentials" not in caplog.text:
        time.sleep(0.01)
    s3.proxy.faults.clear()
    s3.proxy.fault("expired", "GET", "/2/variables/", times=4)
    s3.put_folder(half / "1", "models/half/2")
    until(server, {1: "END", 2: "AVAILABLE"})
    assert not s3.proxy.faults
    assert len(re.findall("models/half/saved_model.pb is refused", caplog.text)) == 1
    server.close()
    thread.join()


def test_the_last_version_stays_when_its_folder_goes(watched, half):
    server, client = watched
    shutil.rmtree(half / "1")
    time.sleep(0.2)
    assert client.post("/v1/models/half:predict", json=ROW).json() == {"predictions": [2.5]}
    assert client.get("/v1/models/half/metadata").status_code == 200
    assert client.get("/models").json()["models"][0]["version"] == 1


def test_models_that_cannot_be_loaded_are_refused_in_a_sentence(half, tmp_path):
    damaged(half, 2)
    with pytest.raises(UserError, match="SavedModel is damaged: .*export it again"):
        served.loaded({"half": half})
    with pytest.raises(UserError, match=r"empty has no versions"):
        (tmp_path / "empty").mkdir()
        Models([Source("empty", str(tmp_path / "empty"))]).load()
    extra = half / "1" / "assets.extra"
    extra.mkdir()
    (extra / "tf_serving_warmup_requests").write_bytes(b"damaged" * 9)
    with pytest.raises(UserError, match=r"tf_serving_warmup_requests is damaged"):
        served.loaded({"half": half / "1"})


def test_what_is_found(half):
    found = Models([Source("half", str(half)), Source("other", str(half))])
    with pytest.raises(NotReady):
        found.find("half")
    with pytest.raises(NotFound, match='"model" is missing; the models are half, other'):
        found.find(None)
    with pytest.raises(NotFound, match=r"Latest\(no\); there are half, other"):
        found.find("no")
    found.load()
    assert found.find("half").number == 1 and found.find("half", 1).name == "half"
    assert [each.name for each in found.servables()] == ["half", "other"]
    found.close()


@pytest.mark.slow
def test_a_keras_file_is_exported_to_a_folder_that_is_removed(families, tmp_path):
    families["reviews"].model.save(tmp_path / "film.keras")
    server = served.loaded({"film": tmp_path / "film.keras"})
    folder = Path(server.models.sources["film"].path)
    client = TestClient(server.app([]), "http://localhost")
    asked = {"inputs": families["reviews"].rows}
    (first, *_) = client.post("/predict", json=asked).json()["answers"]
    expected = families["reviews"].model.predict([families["reviews"].rows[0]["text"]])[0]
    assert first["probability"] == pytest.approx(expected["probability"], abs=1e-5)
    assert (folder / "1" / "saved_model.pb").is_file()
    server.close()
    assert not folder.exists()


def test_an_export_from_ids_answers_texts_too(families, tmp_path):
    model = families["reviews"].model
    model.export(tmp_path / "ids", inputs="ids")
    servable = Servable("ids", 1, tmp_path / "ids", BatchQueue)
    (found,) = servable.predict([{"text": "the cat sat"}], {})
    assert found["probabilities"] == pytest.approx(
        model.predict("the cat sat")["probabilities"], abs=1e-5
    )
    assert servable.description()["inputs"] == [
        {"name": "text", "dtype": "string", "is_list": False}
    ]
    servable.queue.close()
