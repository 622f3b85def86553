"""Damaged captures of real traffic through the whole engine: every table to its end, or a clear
error, in bounded memory."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kafkawire.capture import tables
from kafkawire.errors import BadMagic, TruncatedCapture
from tests.conftest import FIXTURES

from .files.test_damaged_files import DAMAGES
from .wire import Packet, pcapng, read

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CAPTURES = FIXTURES / "captures"
ROOM = 48 << 20
"""Bytes that reading a small capture may take at its peak, whatever it says of itself."""


def as_pcapng(data: bytes) -> bytes:
    """Write the packets of a pcap file as pcapng."""
    blocks, _ = read(data)
    return pcapng(
        Packet(block.data[at : at + size], time)
        for block in blocks
        for at, size, time in zip(
            block.start.tolist(), block.captured.tolist(), block.ts.tolist(), strict=True
        )
    )


PLAIN = {name: (CAPTURES / f"{name}.pcap").read_bytes() for name in ("kcat-kf", "kp22-old-0.9")}
FILES = {
    "pcap": PLAIN["kcat-kf"],
    "pcap of old versions": PLAIN["kp22-old-0.9"],
    "pcapng": as_pcapng(PLAIN["kcat-kf"]),
    "gzip": gzip.compress(PLAIN["kcat-kf"]),
    "zstd": zstd.compress(as_pcapng(PLAIN["kcat-kf"])),
}


def survive(data: bytes, table: str) -> None:
    """Read a table to its end; batches fit their schema, nothing but what is documented is raised,
    and memory is bounded.
    """
    tracemalloc.start()
    try:
        for batch in tables.read(io.BytesIO(data), table):
            batch.validate(full=True)
            assert batch.schema == tables.TABLES[table].schema
    except (BadMagic, TruncatedCapture):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < ROOM


@pytest.mark.timeout(300)
@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 1 << 32).map(random.Random), st.sampled_from(DAMAGES))
@pytest.mark.parametrize("table", tables.TABLES)
@pytest.mark.parametrize("name", FILES)
def test_damage(
    name: str,
    table: str,
    rng: random.Random,
    damage: Callable[[bytes, random.Random], bytes],
) -> None:
    survive(damage(FILES[name], rng), table)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("filling", [b"\0", b"\xff"], ids=["zeros", "ones"])
def test_much_out_of_little(pack: Callable[[bytes], bytes], filling: bytes) -> None:
    survive(pack(PLAIN["kcat-kf"] + filling * (100 << 20)), "problems")
