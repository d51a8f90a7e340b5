"""Fixtures that every test may use."""

import gc
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Hypothesis would import trio, which selenium needs, and warn about it.
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402

from tests.buckets import emulator, gs, moto, s3  # noqa: E402, F401
from tests.processors import ends_in_bfloat16  # noqa: E402

# When garbage was last looked for.
_collected = time.monotonic()


def pytest_configure() -> None:
    """Leaves graphs as they were traced where `tests.run` says so."""
    if os.environ.get("BERT_TF_TESTS_UNOPTIMIZED"):
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def pytest_collection_finish() -> None:
    """Keeps what was imported out of garbage collection, which takes 5 % of the time otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Lets go of what files have traced, every few seconds; graphs are in cycles."""
    global _collected
    if nextitem and nextitem.path != item.path and time.monotonic() > _collected + 5:
        gc.collect()
        _collected = time.monotonic()


def pytest_sessionfinish() -> None:
    """Keeps pytest from looking for garbage five times when it ends."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves out tests in bfloat16 under a setting that ends the process in them."""
    if item.get_closest_marker("bfloat16") and ends_in_bfloat16():
        pytest.skip("oneDNN computes no bfloat16 under this ONEDNN_MAX_CPU_ISA")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data (what benchmarks/README.md lists), or a skip where there is none."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("BERT_TF_SHARED", beside)) / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set BERT_TF_SHARED to run this test")
    return folder
