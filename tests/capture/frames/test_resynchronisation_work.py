"""Resynchronisation takes work that is linear in the bytes, whatever they look like."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from kafkawire import capture
from kafkawire.capture.exchanges.client_detection import retry_bytes
from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.files import pcap, pcapng, pcapng_blocks
from kafkawire.capture.files import resynchronisation as resync
from kafkawire.capture.files.pcap import PcapDecoder
from kafkawire.capture.files.pcapng import PcapngDecoder
from kafkawire.capture.frames import detection
from kafkawire.capture.frames.effort import MIN_EFFORT, Effort
from kafkawire.primitives import DEFAULT_LIMITS
from tests.capture import wire
from tests.capture.machine import feed, finish

MORE = 8
SLACK = 1.6


def pcap_header(seconds: int, captured: int) -> bytes:
    return struct.pack("<IIII", seconds, 0, captured, captured)


def bouts(count: int) -> bytes:
    """Write a pcap in which five packets and damage follow one another."""
    some = (pcap_header(1000, 14) + b"\xee" * 14) * 5 + b"\xff" * 16
    return wire.pcap([]) + some * count


def broken_chains(count: int) -> bytes:
    """Write damage in which most words may begin a packet, and the third header is wrong."""
    head = wire.pcap([]) + b"\xff" * 16
    return head + (struct.pack("<I", 24) * 12 + b"\xff" * 4) * count


def broken_blocks(count: int) -> bytes:
    """Write a pcapng in which a packet and damage follow one another."""
    packet = wire.enhanced(wire.Packet(b"\xee" * 16), 1000)
    return wire.section() + wire.interface() + (packet + b"\xff" * 8) * count


def calls(work: Callable[[], object]) -> int:
    """Count the calls that some work makes, of Python and of C."""
    made = 0

    def count(_: Any, event: str, __: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


def read(decoder: PcapDecoder | PcapngDecoder, data: bytes) -> int:
    packets = sum(len(block) for block in decoder.feed(data))
    return packets + sum(len(block) for block in decoder.finish())


@pytest.mark.parametrize("size", [pcap.SEARCH_BYTES, 1 << 18])
@pytest.mark.parametrize(
    ("make", "write"),
    [(PcapDecoder, bouts), (PcapDecoder, broken_chains), (PcapngDecoder, broken_blocks)],
)
def test_bytes_judged_are_linear(
    make: Callable[[], PcapDecoder | PcapngDecoder],
    write: Callable[[int], bytes],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if they are more than are searched at a time."""
    checked = 0
    for decoder in (pcap, pcapng):
        monkeypatch.setattr(decoder, "SEARCH_BYTES", size)

    class Counting(resync.Search):
        def _next(self) -> None:
            nonlocal checked
            before = self.searched
            super()._next()
            checked += self.searched - before

    monkeypatch.setattr(resync, "Search", Counting)
    monkeypatch.setattr(pcapng_blocks, "Search", Counting)
    data = write(20_000)
    read(make(), data)
    assert checked <= 3 * len(data), "once, and half of what was searched in vain again"


def test_a_place_of_every_word_is_no_call_of_its_own() -> None:
    data = broken_chains(4000)
    assert calls(lambda: read(PcapDecoder(), data)) < len(data) // 20


def test_packets_between_damage_are_all_found() -> None:
    assert read(PcapDecoder(), bouts(300)) >= 299 * 5
    assert read(PcapngDecoder(), broken_blocks(300)) == 300


# -- streams


def interpreted(name: str) -> Any:
    """Load a module of `kafkawire.capture` from its source: native code hides its calls."""
    path = Path(capture.__file__).parent.joinpath(*name.split(".")).with_suffix(".py")
    spec = spec_from_file_location(f"kafkawire.capture.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spent(
    data: bytes, piece: int, monkeypatch: pytest.MonkeyPatch, **given: Any
) -> tuple[int, int]:
    """Feed a stream; returns how often a position was checked, and how many bytes were decoded."""
    checked = decoded = 0
    source = interpreted("frames.detection")
    machines = interpreted("exchanges.conversation")
    searches = interpreted("exchanges.client_detection")
    monkeypatch.setattr(searches, "scan_request", source.scan_request)
    monkeypatch.setattr(machines, "ClientDetection", searches.ClientDetection)
    monkeypatch.setattr(machines, "find_request", source.find_request)
    check, spend_it = source.check_request, source.Effort.spend

    def counted(*arguments: Any) -> Any:
        nonlocal checked
        checked += 1
        return check(*arguments)

    def spend(self: Any, done: int, copied: int) -> None:
        nonlocal decoded
        decoded += done
        spend_it(self, done, copied)

    monkeypatch.setattr(detection, "check_request", counted)
    monkeypatch.setattr(source.Effort, "spend", spend)
    machine = machines.Conversation(**given)
    for at in range(0, len(data), piece):
        feed(machine, 0, data[at : at + piece], at // piece + 1, 1)
    finish(machine)
    return checked, decoded


def endless(size: int) -> bytes:
    """Write the beginning of a Metadata request of a MiB: a long array of empty names."""
    head = struct.pack(">ihhih", 1 << 20, 3, 1, 7, 1) + b"c" + struct.pack(">i", 500_000)
    return head + bytes(size - len(head))


def heads(size: int) -> bytes:
    """Write plausible heads of large requests, one behind the other."""
    head = struct.pack(">ihhih", 1 << 19, 3, 1, 7, 1) + b"c" + struct.pack(">i", 200_000)
    return head * (size // len(head))


@pytest.mark.parametrize("write", [endless, heads, bytes])
@pytest.mark.parametrize("given", [{}, {"client": 0, "in_sync": (False, False)}])
def test_bytes_decoded_are_linear(
    write: Callable[[int], bytes], given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = 20_000, 20_000 * MORE
    few = spent(write(small), 100, monkeypatch, **given)
    many = spent(write(large), 100, monkeypatch, **given)
    for before, after in zip(few, many, strict=True):
        assert after <= SLACK * MORE * before + 1000
    assert many[1] <= 12 * large + MIN_EFFORT


def test_the_effort_of_one_search_is_bounded() -> None:
    """Whole frames that are wrong at their ends: each takes as long as it is."""
    names = 400
    head = struct.pack(">ihhih", 15 + 2 * names, 3, 1, 0x7FFFFFFF, 1) + b"c"
    data = (head + struct.pack(">i", names - 10) + b"\0\0" * names) * 3000
    limit = DEFAULT_LIMITS.max_frame_bytes
    found = detection.scan_request(data, limit).found
    assert found is None or not found.proven
    effort = Effort(1000)
    for at in range(0, len(data), len(head) + 4 + 2 * names):
        detection.check_request(data, at, limit, effort)
        if effort.left < 0:
            break
    assert effort.left < 0, "what it takes is counted"
    assert at <= MIN_EFFORT + 8 * 1000


@pytest.mark.parametrize("piece", [1, 7, 1460])
def test_a_request_is_found_behind_bytes_that_look_like_one(piece: int) -> None:
    import kafkawire
    from kafkawire.messages.metadata_request import MetadataRequest

    frame = kafkawire.encode_frame(MetadataRequest(), 1, 9, client_id="me")
    fake = (
        struct.pack(">ihhih", 500, 3, 1, 0x7FFFFFFF, 1)
        + b"c"
        + struct.pack(">i", 2)
        + b"\xff" * 300
    )
    data = b"\xee" * 50 + fake + frame + frame
    machine = Conversation()
    found = []
    for at in range(0, len(data), piece):
        found += feed(machine, 0, data[at : at + piece], at + 1, 1)
    found += finish(machine)
    assert [row.client_id for row in found if row.status == "ok"] == ["me", "me"]
    assert sum(row.length + 4 * row.is_message for row in found) == len(data)


def test_looks_grow_with_the_bytes() -> None:
    assert retry_bytes(0) == 1
    looks, held = 0, 0
    while held < 1 << 20:
        held += retry_bytes(held)
        looks += 1
    assert looks < 200
