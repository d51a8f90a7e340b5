"""What glibc is told for the processes that are timed."""

import os
import subprocess
import sys

from benchmarks.allocation import environment

# A large block, made and freed again and again, as a library without a pool does.
BLOCKS = """
import resource
for _ in range(20):
    bytearray(b"x") * (64 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def test_a_block_that_is_freed_is_used_again():
    faults = [
        int(subprocess.check_output([sys.executable, "-c", BLOCKS], env=variables))
        for variables in (os.environ, environment())
    ]
    assert faults[1] < faults[0] / 5
