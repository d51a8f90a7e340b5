"""Processes that keep the memory that they free, in huge pages.

By default glibc gives large blocks back to the system as soon as they are freed, and every page of
the next one is made anew. TensorFlow has a pool of its own. PyTorch has none on CPU, and its tuning
guide advises to start it with another allocator. glibc's own, set to give nothing back, serves as
well and is on every machine. Linux then also backs large blocks by huge pages, where it lets
programs choose (`madvise`): each read of the weights misses fewer translations of addresses.
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
    """What a process that is timed is started with: this one's, `KEEPS_MEMORY`, and its own."""
    return os.environ | KEEPS_MEMORY | (own or {})
