"""Files in buckets: their copies, what is stored when, and what goes wrong on the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.errors import UserError
from bert_tf.io import files, remote, stores
from bert_tf.io.atomic import atomic_path, remove_folder, write_text
from bert_tf.io.remote import exists, fetched, local_path, synchronize
from bert_tf.io.resumable import resumable_file

# More than a piece, so that it is fetched in several.
LONG = os.urandom(3 * 2**20)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(remote, "_PIECE", 2**20)


def folder_of(text: str, path) -> None:
    """Writes a folder that readers recognize by its config.json."""
    with atomic_path(path) as new:
        (new / "variables").mkdir(parents=True)
        (new / "config.json").write_text(text)
        (new / "variables" / "a.bin").write_text(text)
        (new / "z.txt").write_text(text)


@pytest.mark.parametrize("address", ["s3://", "gs://b//x", "s3://b/../x", "s3://b/./x"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UserError, match=f"^{address} is not an address such as"):
        local_path(address)


def test_no_package_of_a_store_is_imported_without_an_address():
    code = "import sys, bert_tf.io.atomic, bert_tf.io.resumable, bert_tf.config.reading\n"
    code += "assert not {'fsspec', 's3fs', 'gcsfs', 'aiohttp'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    stores.store_of.cache_clear()
    with pytest.raises(UserError, match=r"^reading and writing s3:// requires the extra s3 \("):
        files.read_text("s3://bucket/file")
    stores.store_of.cache_clear()


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_file_is_written_read_kept_and_read_again_when_it_has_changed(scheme, request):
    bucket = request.getfixturevalue(scheme)
    address = f"{bucket.address}/notes/a.txt"
    assert not exists(address)
    with pytest.raises(UserError, match=f"^notes not found: {address}$"):
        files.read_text(address, "notes")

    write_text(address, "one")
    assert bucket.names() == ["notes/a.txt"]
    assert files.read_text(address) == "one"
    assert bucket.proxy.count("GET", "alt=media") == bucket.proxy.count("GET", "/notes/a.txt") == 0

    bucket.put("notes/a.txt", "two")
    assert files.read_text(address) == "two"
    bucket.remove("notes/a.txt")
    with pytest.raises(UserError, match="not found"):
        files.read_text(address)


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_folder_is_what_is_in_the_bucket_now(scheme, request):
    bucket = request.getfixturevalue(scheme)
    for name in ("a/1.txt", "a/b/2.txt", "a/b/.hidden", "ab.txt"):
        bucket.put(name, name)
    place = fetched(f"{bucket.address}/a")
    names = lambda: sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())  # noqa: E731
    assert names() == ["1.txt", "b/2.txt"]
    bucket.remove("a/b")
    bucket.put("a/3.txt", LONG)
    assert fetched(f"{bucket.address}/a") == place
    assert names() == ["1.txt", "3.txt"]
    assert not (place / "b").exists()
    assert (place / "3.txt").read_bytes() == LONG


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_globs(scheme, request):
    from bert_tf.data.corpora.corpus import find_files

    bucket = request.getfixturevalue(scheme)
    for name in ("t/a-1.txt", "t/a-2.txt", "t/b.txt", "t/deep/a-3.txt"):
        bucket.put(name, name)
    found = lambda pattern: [p.name for p in find_files(f"{bucket.address}/{pattern}")]  # noqa: E731
    assert found("t/a-*.txt") == ["a-1.txt", "a-2.txt"]
    assert found("t/a-[2].txt") == ["a-2.txt"]
    assert found("t/**/a-*.txt") == ["a-1.txt", "a-2.txt", "a-3.txt"]
    assert found("t") == ["a-1.txt", "a-2.txt", "b.txt", "a-3.txt"]
    with pytest.raises(UserError, match=r"no file matches .*://bucket-\d+/t/c\*"):
        found("t/c*")


def test_the_marker_of_a_folder_is_stored_last_and_removed_first(s3):
    folder_of("one", f"{s3.address}/model")
    stored = [path.partition("/model/")[2] for m, path in s3.proxy.seen if m == "PUT"]
    stored = [name.partition("?")[0] for name in stored if name]
    assert stored[-1] == "config.json" and len(stored) == 3
    s3.put("model/old.txt", "old")
    s3.proxy.seen.clear()

    folder_of("two", f"{s3.address}/model")
    changes = [m for m, path in s3.proxy.seen if "config.json" in path and m in ("PUT", "DELETE")]
    assert changes == ["DELETE", "PUT"]
    assert s3.names() == ["model/config.json", "model/variables/a.bin", "model/z.txt"]
    assert s3.get("model/z.txt") == b"two"
    s3.proxy.seen.clear()

    remove_folder(local_path(f"{s3.address}/model"))
    removed = [path for m, path in s3.proxy.seen if m == "DELETE"]
    assert "config.json" in removed[0] and s3.names() == []


@pytest.mark.slow
def test_a_reader_takes_no_folder_that_changes_meanwhile(s3, monkeypatch):
    folder_of("one", f"{s3.address}/model")
    address, get = f"{s3.address}/model", stores.Store.read
    copy = local_path(address)
    remove = lambda: [path.unlink() for path in copy.rglob("*") if path.is_file()]  # noqa: E731
    remove()
    changed = []

    def read(self, key, *args):
        if key.endswith("z.txt") and not changed:
            changed.append(key)
            for name in ("config.json", "variables/a.bin", "z.txt"):
                s3.put(f"model/{name}", "two")
        return get(self, key, *args)

    monkeypatch.setattr(stores.Store, "read", read)
    fetched(address)
    assert {path.read_text() for path in copy.rglob("*") if path.is_file()} == {"two"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "what, method, part",
    [
        ("drop", "GET", "long.bin"),
        ("slow_down", "GET", "long.bin"),
        ("slow_down", "HEAD", "long.bin"),
        ("refuse", "GET", "long.bin"),
        ("internal", "GET", "list-type"),
        ("internal", "PUT", "long.bin"),
        ("slow_down", "PUT", "long.bin"),
        ("refuse", "PUT", "long.bin"),
        ("lose", "PUT", "long.bin"),
    ],
)
def test_a_fault_that_passes_is_no_fault(s3, what, method, part):
    s3.proxy.fault(what, method, part, times=2)
    address = f"{s3.address}/folder/long.bin"
    with atomic_path(address, is_file=True) as new:
        new.write_bytes(LONG)
    local_path(address).unlink()
    assert fetched(f"{s3.address}/folder") / "long.bin" == local_path(address)
    assert local_path(address).read_bytes() == LONG
    assert s3.get("folder/long.bin") == LONG
    assert not s3.proxy.faults  # all of them were met


@pytest.mark.slow
@pytest.mark.parametrize(
    "what, method", [("drop", "GET"), ("internal", "POST"), ("internal", "GET")]
)
def test_faults_of_the_other_store(gs, what, method):
    gs.proxy.fault(what, method, "/o", times=1)
    address = f"{gs.address}/long.bin"
    with atomic_path(address, is_file=True) as new:
        new.write_bytes(LONG)
    local_path(address).unlink(missing_ok=True)
    assert fetched(address).read_bytes() == LONG
    assert not gs.proxy.faults


@pytest.mark.slow
def test_listings_in_pages_and_slow_answers(s3):
    for number in range(7):
        s3.put(f"many/{number}.txt", str(number))
    s3.put("many/long.bin", LONG[: 2**18])
    s3.proxy.page = 2
    s3.proxy.fault("slow", "GET", "long.bin")
    s3.proxy.seen.clear()
    place = fetched(f"{s3.address}/many")
    assert s3.proxy.count("GET", "list-type=2") >= 4
    assert len([*place.iterdir()]) == 8
    assert (place / "long.bin").read_bytes() == LONG[: 2**18]


def test_what_cannot_be_stored_is_kept_here_and_named(s3):
    s3.proxy.fault("internal", "PUT", "/model/", times=10_000)
    with pytest.raises(UserError) as error:
        folder_of("one", f"{s3.address}/model")
    said = str(error.value)
    assert "cannot be reached" in said and "AWS_ENDPOINT_URL" in said
    kept = Path(said.rpartition(" is kept in ")[2])
    assert (kept / "config.json").read_text() == "one"
    s3.proxy.faults.clear()
    folder_of("two", f"{s3.address}/model")
    assert not kept.exists()


def test_pieces_of_a_file_and_notes_on_them_stay_on_this_machine(s3):
    path = f"{s3.address}/vectors/1.npy"
    with pytest.raises(KeyboardInterrupt), resumable_file(path, {"texts": 2}) as file:
        file.append(b"one", 1)
        raise KeyboardInterrupt
    assert s3.names() == []
    with resumable_file(path, {"texts": 2}) as file:
        assert file.done == 1
        file.append(b"two", 2)
    assert s3.names() == ["vectors/1.npy"] and s3.get("vectors/1.npy") == b"onetwo"
    assert [each.name for each in local_path(path).parent.glob("*.part*")] == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["HEAD", "GET", "PUT"])
def test_expired_credentials_are_one_sentence_at_once(s3, method):
    address = s3.put("a.txt", "one")
    s3.proxy.fault("expired", method, "a.txt", times=10_000)
    if method == "PUT":
        with pytest.raises(UserError, match=r"^s3://bucket-\d+/a.txt is refused \(.*AWS_PROFILE"):
            write_text(address, "two")
        assert s3.get("a.txt") == b"one"
    else:
        with pytest.raises(UserError, match=r"^s3://bucket-\d+/a.txt is refused \(.*AWS_PROFILE"):
            files.read_text(address)
    assert len(s3.proxy.faults) > 9_990


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_missing_bucket_is_one_sentence(scheme, request):
    request.getfixturevalue(scheme)
    said = f"^there is no bucket {scheme}://nowhere-1; create it, or correct the name"
    with pytest.raises(UserError, match=said):
        files.read_text(f"{scheme}://nowhere-1/a.txt")
    with pytest.raises(UserError, match=said):
        fetched(f"{scheme}://nowhere-1/a")
    with pytest.raises(UserError, match=said + ".*; what was to be stored is kept in /"):
        write_text(f"{scheme}://nowhere-1/a.txt", "one")


@pytest.mark.slow
def test_what_is_new_replaces_nothing(s3):
    address = s3.put("model.bin", "one")
    with pytest.raises(UserError, match="exists already"), atomic_path(address, True, True):
        pass
    s3.remove("model.bin")
    with atomic_path(address, is_file=True, is_new=True) as new:
        new.write_text("two")
    assert s3.get("model.bin") == b"two"


@pytest.mark.slow
def test_a_half_written_folder_of_a_killed_process_does_not_exist(s3):
    address = f"{s3.address}/models/1"
    s3.put("models/1/z.txt", "half")
    assert exists(address)  # a folder of another program
    s3.put("models/.1.lock", "{}")
    assert not exists(address)  # left by a killed process
    s3.put("models/1/config.json", "whole")
    assert exists(address)


@pytest.mark.slow
def test_logs_are_stored_when_they_have_grown(s3):
    run = local_path(f"{s3.address}/run")
    (run / "logs").mkdir(parents=True)
    log = run / "logs" / "events"
    log.write_text("one")
    synchronize(run)
    assert s3.get("run/logs/events") == b"one"
    puts = s3.proxy.count("PUT")
    synchronize(run)
    assert s3.proxy.count("PUT") == puts
    with log.open("a") as file:
        file.write(" two")
    fetched(run)
    assert log.read_text() == "one two"  # the newer local file stays
    synchronize(run)
    assert s3.get("run/logs/events") == b"one two"


@pytest.mark.slow
def test_the_cache_has_a_size_and_keeps_what_is_used(s3, monkeypatch):
    monkeypatch.setenv("BERT_TF_CACHE_GB", "0.0025")
    addresses = [s3.put(f"{number}.bin", bytes(10**6)) for number in range(4)]
    code = "import sys; from bert_tf.io.remote import fetched; [fetched(a) for a in sys.argv[1:]]"
    for address in addresses[:3]:  # each of its own process
        subprocess.run([sys.executable, "-c", code, address], check=True)
    there = lambda: [local_path(each).exists() for each in addresses]  # noqa: E731
    assert there() == [False, True, True, False]
    fetched(addresses[1])
    fetched(addresses[3])
    assert there() == [False, True, False, True]
    fetched(addresses[0])
    assert there() == [True, True, False, True]  # this process has used all three


def test_a_wrong_size_of_the_cache(s3, monkeypatch):
    monkeypatch.setenv("BERT_TF_CACHE_GB", "much")
    with pytest.raises(UserError, match="^BERT_TF_CACHE_GB is 'much'; set it to a number$"):
        fetched(s3.put("a.txt", "one"))


@pytest.mark.slow
def test_an_object_and_a_folder_of_one_name(s3):
    s3.put("a/b", "file")
    s3.put("a/b/c", "file")
    with pytest.raises(UserError, match="both an object and a folder"):
        fetched(f"{s3.address}/a")


@pytest.mark.slow
def test_a_file_takes_no_name_of_a_folder(s3):
    s3.put("runs/a/config.yaml", "one")
    with pytest.raises(UserError, match=r"^cannot write s3://bucket-\d+/runs: it is a folder"):
        write_text(f"{s3.address}/runs", "one")
    assert s3.names() == ["runs/a/config.yaml"]
