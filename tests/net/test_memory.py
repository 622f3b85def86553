"""Memory that responses free is there for the next one."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
import kafkawire.net.consumer
from kafkawire.net.sockets.memory import keep_freed

chunk = bytes(1 << 18)

def fetch():
    frame = b"".join([chunk, chunk, chunk, chunk, b"head" * 30])
    records = frame[100:]
    return [records[at : at + 1000] for at in range(0, 200_000, 1000)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

keep_freed(4 << 20)
fetch()
before = faults()
for _ in range(50):
    fetch()
print((faults() - before) / 50)
"""
"""What a consumer allocates and frees for each response, with the modules of a consumer loaded."""


def test_responses_reuse_the_memory_of_the_one_before() -> None:
    """Without `keep_freed` each takes about 500 new pages from the kernel."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert float(done.stdout) < 50
