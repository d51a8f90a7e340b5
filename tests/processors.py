"""The settings under which one processor computes as others do.

oneDNN and XLA each have a setting of their own. What neither of them computes (Eigen's loops, most
of LiteRT) uses the instructions that the packages were built for, under every setting.
"""

import os
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
    """The environment in which this processor computes with these instructions of another.

    >>> computing_as("AVX2")
    {'ONEDNN_MAX_CPU_ISA': 'AVX2', 'XLA_FLAGS': '--xla_cpu_max_isa=AVX2'}
    """
    limit = f"--xla_cpu_max_isa={_INSTRUCTIONS[instructions]}"
    return {"ONEDNN_MAX_CPU_ISA": instructions, "XLA_FLAGS": limit}


# What the suite is run under: a name -> the environment.
SETTINGS: dict[str, dict[str, str]] = {
    "SSE4.1": computing_as("SSE41"),
    "AVX2": computing_as("AVX2"),
    "without oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "native": {},
}


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

    TensorFlow asks the processor whether it has such instructions, and oneDNN asks the setting
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
