"""Processes that keep the memory that they free, in huge pages.

By default glibc gives large blocks back to the system as soon as they are freed, and the system
maps every page of the next block anew. TensorFlow has a pool of its own. PyTorch has none on CPU,
and its tuning guide recommends another allocator. glibc's allocator, set to give nothing back,
works as well and is on every machine. Where Linux lets programs choose (`madvise`), it then also
backs large blocks with huge pages, so reads of the weights cause fewer misses of the TLB.
"""

import os
from collections.abc import Mapping

# For the environment of a process; see mallopt(3).
KEEPS_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


def environment(own: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a timed process: this process's, `KEEPS_MEMORY`, and `own`."""
    return os.environ | KEEPS_MEMORY | (own or {})
