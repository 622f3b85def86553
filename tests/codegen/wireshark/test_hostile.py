"""Hostile bytes end in marked messages, never in an error of Lua; items are bounded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkawire.records import BatchBuilder, Compression
from tests.capture.written import BROKER, CLIENT, Scenario, request
from tests.conftest import FIXTURES
from tests.fuzzing import SOAK, mutate, replayable, seeds

from . import frames
from .test_conversations import experts, messages
from .test_golden import as_fetched
from .tshark import PREFIX, Item, dissect

MUTATED = 150
"""Exchanges of a capture of mutated messages."""


def zeros(count: int, version: int = 0) -> bytes:
    """A frame of a Metadata request of version 0 that counts more topics than it has bytes."""
    head = bytes.fromhex("0003") + version.to_bytes(2, "big") + bytes.fromhex("00000001 0002 6d65")
    return frames.frame(head + count.to_bytes(4, "big") + bytes(100))


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(1))
def test_mutated_messages(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [(key, version, sides) for (key, version), sides in sorted(frames.pairs().items())]
    scenario = Scenario()
    for number in range(MUTATED):
        key, version, sides = rng.choice(rows)
        for side, write, name in (
            (CLIENT, frames.request, "request"),
            (BROKER, frames.response, "response"),
        ):
            body = bytes.fromhex(rng.choice(sides[name])["hex"])[:20_000]
            sound = side == CLIENT and rng.random() < 0.5
            data = write(key, version, number, body if sound else mutate(body, rng))
            frames.send(scenario, side, data)
    with replayable(seed):
        found = dissect(scenario.save(tmp_path / "mutated.pcap")).messages
        assert len(found) >= MUTATED


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(1))
def test_mutated_streams(seed: int, tmp_path: Path) -> None:
    """Sizes and headers are mutated too, so frames begin anywhere."""
    rng = random.Random(seed)
    scenario = Scenario()
    for connection in range(40):
        for number in range(4):
            data = request("Metadata", rng.randrange(13), number, topics=[{"name": "orders"}])
            frames.send(scenario, CLIENT, mutate(data, rng, 2) or b"\0", connection)
            frames.send(scenario, BROKER, rng.randbytes(rng.randint(1, 80)), connection)
    with replayable(seed):
        dissect(scenario.save(tmp_path / "mutated.pcap"))


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(1))
def test_mutated_record_batches(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    scenario = Scenario()
    codecs = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
    for number in range(80):
        builder = BatchBuilder(base_offset=number, compression=rng.choice(codecs))
        for _ in range(3):
            builder.append(rng.randbytes(3), b"value" * rng.randint(0, 40), headers=(("a", b"b"),))
        data = builder.build()
        head = 61 if rng.random() < 0.5 else 0
        as_fetched(scenario, number, data[:head] + mutate(data[head:], rng))
    with replayable(seed):
        dissect(scenario.save(tmp_path / "mutated.pcap"))


HOSTILE = sorted(p.name for p in (FIXTURES / "hostile").glob("*.pcap"))
FEW = ("endless-zeros.pcap", "repeated-headers.pcap")


@pytest.mark.fuzz
@pytest.mark.parametrize("name", FEW if SOAK == 1 else HOSTILE)
def test_hostile_captures(name: str) -> None:
    dissect(FIXTURES / "hostile" / name)


def test_hostile_bodies(tmp_path: Path) -> None:
    scenario = Scenario()
    lines = (FIXTURES / "hostile" / "bodies.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    for number, (message, version, *body) in enumerate(rows):
        name = message.removesuffix("Request").removesuffix("Response")
        data = bytes.fromhex("".join(body))
        write, side = (
            (frames.response, BROKER) if message.endswith("Response") else (frames.request, CLIENT)
        )
        key = frames.key_of(name)
        if side == BROKER:
            frames.send(scenario, CLIENT, frames.request(key, int(version), number, b""))
        frames.send(scenario, side, write(key, int(version), number, data))
    assert len(messages(scenario, tmp_path)) >= len(rows)


def test_an_array_of_more_elements_than_bytes(tmp_path: Path) -> None:
    counts = [101, 0x7FFFFFFF]
    found = messages(Scenario().send(CLIENT, b"".join(map(zeros, counts))), tmp_path)
    assert [experts(item) for item in found] == [
        [f"kafkawire.metadata.topics: an array of {count} elements, 100 bytes left (at byte 20)"]
        for count in counts
    ]


def test_a_negative_number_of_tagged_fields(tmp_path: Path) -> None:
    """The dissector goes on, as Kafka before 4.4 did."""
    body = bytes.fromhex("01" + "00" * 3 + "ffffffff0f")
    data = frames.request(frames.key_of("Metadata"), 9, 1, body)
    (only,) = messages(Scenario().send(CLIENT, data), tmp_path)
    assert experts(only) == ["a negative number of tagged fields (-1)"]


def test_a_message_of_more_items_than_wanted(tmp_path: Path) -> None:
    topics = [{"name": f"t{number}"} for number in range(500)]
    scenario = Scenario().request("Metadata", 9, topics=topics)
    (only,) = messages(scenario, tmp_path, "-o", "kafkawire.max_items:50")
    assert 40 < _items(only) <= 51
    assert experts(only) == ["the tree shows the first 50 items of this message"]


def test_records_of_a_batch_that_expands_beyond_the_limit(tmp_path: Path) -> None:
    scenario = Scenario()
    codecs = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
    for number, codec in enumerate(codecs):
        builder = BatchBuilder(base_offset=0, compression=codec)
        builder.append(b"key", bytes(200_000))
        as_fetched(scenario, number, builder.build())
    found = messages(scenario, tmp_path, "-o", "kafkawire.max_decompressed:100000")
    shown = [experts(item) for item in found if item.value("direction") == "response"]
    assert shown == [[f"{codec.name.lower()}: too large"] for codec in codecs]
    whole = messages(scenario, tmp_path)
    keys = [item.value("record_key") for item in whole if item.value("direction") == "response"]
    assert keys == [b"key".hex(":")] * 3


def test_text_from_outside_is_escaped_by_wireshark(tmp_path: Path) -> None:
    """A name cannot forge a line of `tshark -V`."""
    from .tshark import run

    name = "a\nKafka protocol: forged\x1b[2J"
    scenario = Scenario().request("Metadata", 9, topics=[{"name": name}])
    text = run(scenario.save(tmp_path / "made.pcap"), "-V", "-O", PREFIX)
    assert "\x1b" not in text
    assert not any(line.startswith("Kafka protocol: forged") for line in text.splitlines())


def _items(item: Item) -> int:
    return sum(each.name.startswith(f"{PREFIX}.") for each in item.walk()) - 1
