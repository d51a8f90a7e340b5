"""A server of small models of every family."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.serve import served


@pytest.fixture(scope="session")
def families():
    return served.models()


@pytest.fixture(scope="session")
def exports(tmp_path_factory, families) -> dict[str, Path]:
    """Name -> folder of versions."""
    folder = tmp_path_factory.mktemp("served")
    for name, each in families.items():
        each.model.export(folder / name, version=1)
    served.HalfPlusTwo().save(folder / "half_plus_two" / "123")
    return {name: folder / name for name in (*families, "half_plus_two")}


@pytest.fixture(scope="session")
def server(exports):
    server = served.loaded(exports)
    yield server
    server.close()


@pytest.fixture(scope="session")
def client(server):
    return TestClient(server.app([]), "http://localhost")


@pytest.fixture(scope="session")
def url(server):
    with served.running(server) as url:
        yield url
