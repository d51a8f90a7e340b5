"""`python -m tests.processors`: the tests, computed as this processor and as others compute.

oneDNN and XLA each have a setting that makes one processor compute as another. Other code uses the
same instructions under every setting: Eigen's loops use those that TensorFlow was built for, and
LiteRT uses those of the processor. Options that are not named below go to `tests.run`.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# From the fewest instructions to the most: oneDNN's name, and XLA's.
_INSTRUCTIONS = {
    "SSE41": "SSE4_2",
    "AVX": "AVX",
    "AVX2": "AVX2",
    "AVX2_VNNI": "AVX2",
    "AVX512_CORE": "AVX512",
    "AVX512_CORE_VNNI": "AVX512_VNNI",
    "AVX512_CORE_BF16": "AVX512_BF16",
    "AVX512_CORE_AMX": "AMX_BF16",
}
_BFLOAT16 = ("avx512_bf16", "amx_bf16")


def computing_as(instructions: str) -> dict[str, str]:
    """The environment in which this processor computes like one with only these instructions.

    >>> computing_as("AVX2")
    {'ONEDNN_MAX_CPU_ISA': 'AVX2', 'XLA_FLAGS': '--xla_cpu_max_isa=AVX2'}
    """
    limit = f"--xla_cpu_max_isa={_INSTRUCTIONS[instructions]}"
    return {"ONEDNN_MAX_CPU_ISA": instructions, "XLA_FLAGS": limit}


# What the tests are run under: a name -> the environment.
SETTINGS: dict[str, dict[str, str]] = {
    "SSE4.1": computing_as("SSE41"),
    "AVX2": computing_as("AVX2"),
    "without oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "native": {},
}
# What Linux calls the instructions of a setting.
_NEEDED = {"SSE4.1": "sse4_1", "AVX2": "avx2"}
_VARIABLES = {name for environment in SETTINGS.values() for name in environment}


def processor_flags() -> set[str]:
    """The instructions that Linux says this processor has; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next(({*line.split()} for line in lines if line.startswith("flags")), set())


def ends_in_bfloat16(
    environment: Mapping[str, str] | None = None, flags: set[str] | None = None
) -> bool:
    """Whether oneDNN's operations in bfloat16 end the process under a setting.

    TensorFlow checks whether the processor has such instructions, and oneDNN checks the setting
    (TensorFlow 2.20 and 2.21).

    >>> ends_in_bfloat16({"ONEDNN_MAX_CPU_ISA": "AVX2"}, {"avx2", "avx512_bf16"})
    True
    >>> ends_in_bfloat16({"ONEDNN_MAX_CPU_ISA": "AVX2"}, {"avx2"})
    False

    Args:
        environment: the setting; None is that of this process.
        flags: the instructions of the processor; None is `processor_flags()`.
    """
    environment = os.environ if environment is None else environment
    flags = processor_flags() if flags is None else flags
    names = [*_INSTRUCTIONS]
    limit = environment.get("ONEDNN_MAX_CPU_ISA", "").upper()
    if environment.get("TF_ENABLE_ONEDNN_OPTS") == "0" or limit not in names:
        return False
    has_bfloat16 = not flags.isdisjoint(_BFLOAT16)
    return has_bfloat16 and names.index(limit) < names.index("AVX512_CORE")


def missing(setting: str, flags: set[str], machine: str = platform.machine()) -> str | None:
    """Why a setting cannot be tried on a processor; None if it can.

    >>> missing("AVX2", {"sse4_1"}, "x86_64")
    'this processor has no AVX2'
    >>> missing("without oneDNN", {"sse4_1"}, "x86_64")

    Args:
        setting: a name of `SETTINGS`.
        flags: the instructions of the processor.
        machine: its architecture.
    """
    if setting not in _NEEDED or _NEEDED[setting] in flags:
        return None
    if machine != "x86_64":
        return f"this is a processor of {machine}"
    return f"this processor has no {setting}"


def main(argv: list[str] | None = None) -> int:
    """Runs the tests under each setting; returns the exit code, 1 if a test failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.processors", description=__doc__, allow_abbrev=False
    )
    names = [*SETTINGS]
    parser.add_argument("--settings", nargs="+", choices=names, default=names, metavar="SETTING")
    arguments, options = parser.parse_known_args(argv)
    flags, codes = processor_flags(), {}
    for name in arguments.settings:
        print(f"== {name}", flush=True)
        if why := missing(name, flags):
            codes[name] = why
            continue
        # Variables from outside would mix with the setting.
        own = {k: v for k, v in os.environ.items() if k not in _VARIABLES} | SETTINGS[name]
        if ends_in_bfloat16(own, flags):
            print("without the tests that compute in bfloat16", flush=True)
        fast = ["-m", "not slow and not end_to_end"]  # as `make test`
        command = [sys.executable, "-m", "tests.run", *fast, *options]
        codes[name] = "passed" if not subprocess.run(command, env=own).returncode else "failed"
    print("\nprocessors:", *(f"{name}: {how}" for name, how in codes.items()), sep="\n")
    return 1 if "failed" in codes.values() else 0


if __name__ == "__main__":
    sys.exit(main())
