"""The most memory that a process has had.

`ru_maxrss` is not used: for a program that a large process starts, it is at least the size of that
process.
"""

from pathlib import Path


def peak_bytes() -> int:
    """The peak of this process, as Linux counts it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) << 10
