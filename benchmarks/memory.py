"""How much memory a process has, and the most that it has had.

`ru_maxrss` is not used: for a program that a large process starts, it is at least the size of that
process.
"""

from pathlib import Path


def peak_bytes() -> int:
    """The peak of this process, as Linux counts it."""
    return _status("self", "VmHWM")


def resident_bytes(process: int | str = "self") -> int:
    """What a process, by its number, has in memory now."""
    return _status(process, "VmRSS")


def _status(process: int | str, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith(name))
    return int(kib) << 10
