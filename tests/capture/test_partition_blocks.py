"""Partitions read from the bytes of bodies are those of the decoded messages, and rows merged in C
are those of the Python twin.

Without a compiler no body is read without the decoder, and these tests say that the rest holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.tables.arrow.partition_arrays import SCHEMA, WIDTHS
from kafkawire.capture.tables.extraction import partition_blocks
from kafkawire.capture.tables.extraction.decoded_partitions import (
    HAS_PARTITIONS,
    block_of,
    count_records,
    session_mask,
)
from kafkawire.capture.tables.extraction.partition_blocks import COLUMNS, Block, Program, Rows
from kafkawire.capture.tables.extraction.partition_programs import NAMES, partition_program
from kafkawire.capture.tables.extraction.record_batches import RecordsField, count
from kafkawire.capture.tables.partitions import COLUMNS as TABLE
from kafkawire.errors import DecodeError
from kafkawire.messages import REGISTRY
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkawire.primitives import Message, MessageInfo
from kafkawire.records import BatchBuilder
from tests.fuzzing import SOAK
from tests.twins import twin
from tests.vectors import by_message

TWIN: Final = twin(partition_blocks)
NATIVE: Final = not str(partition_blocks.__file__).endswith(".py")
ELEMENTS: Final = 1 << 20

SIDES: Final = [
    (info, is_request)
    for key, is_request in sorted(HAS_PARTITIONS)
    if (info := REGISTRY.request(key) if is_request else REGISTRY.response(key)) is not None
]


def shown(taken: Any) -> list[Any]:
    """Make topics comparable; what comes of numbers that are null does not matter."""
    return [[(topic.name, topic.id) for topic in taken[0]], *taken[1:]]


def rows_of(block: Any) -> list[Any]:
    rows = Rows()
    rows.add(block, None, None, 0)
    return [shown(rows.take(WIDTHS)), None if block is None else block.group]


def program_of(info: MessageInfo, is_request: bool, version: int) -> Program | None:
    cls = REGISTRY.load(info.name)
    key = info.api_key or 0
    return partition_program(cls, key, is_request, version, info.is_flexible(version))


def read(program: Program, data: bytes) -> Block | None:
    reader = partition_blocks.Reader(TopicNames().topic, count_records)
    return reader.read(program, data, 0, ELEMENTS)


def row_of(info: MessageInfo, is_request: bool, version: int, message: Message) -> Row:
    direction = "request" if is_request else "response"
    return Row(
        1, 1, direction, 1, Status.OK, "", info.api_key, info.name, version, 1, None, version,
        message,
    )  # fmt: skip


def decoded(info: MessageInfo, is_request: bool, version: int, data: bytes) -> Any:
    """Return the rows of the decoded message; False if the decoder refuses it."""
    try:
        message = REGISTRY.load(info.name).decode(data, version)
    except DecodeError:
        return False
    return rows_of(block_of(row_of(info, is_request, version, message), TopicNames()))


def vectors() -> Iterator[tuple[MessageInfo, bool, int, Program, bytes]]:
    for info, is_request in SIDES:
        for row in by_message("messages").get(info.name, []):
            program = program_of(info, is_request, row["version"])
            if program is not None:
                yield info, is_request, row["version"], program, bytes.fromhex(row["hex"])


def agrees(found: Block | None, want: list[Any]) -> bool:
    """Whether a block that was read is that of the decoded message."""
    if found is None:
        return True
    if not len(found) and not found.group:
        return want == rows_of(None)
    return rows_of(found) == want


def test_columns_are_those_of_the_table() -> None:
    names = [column.name for column in TABLE]
    assert names[-COLUMNS:] == list(NAMES)
    assert partition_blocks.COLUMNS == TWIN.COLUMNS == COLUMNS
    assert partition_blocks.NO_SESSION == TWIN.NO_SESSION
    assert [SCHEMA.field(name).type.bit_width // 8 for name in ("offset", "batches")] == [8, 4]


def test_vectors() -> None:
    read_so = count_of = 0
    for info, is_request, version, program, data in vectors():
        count_of += 1
        found = read(program, data)
        read_so += found is not None
        assert agrees(found, decoded(info, is_request, version, data)), (info.name, version)
    assert count_of > 500
    assert read_so > count_of // 2 or not NATIVE


def test_most_messages_have_a_program() -> None:
    left = {
        info.name
        for info, is_request in SIDES
        for version in range(info.first, info.last + 1)
        if program_of(info, is_request, version) is None
    }
    assert left == {
        "DescribeTopicPartitionsResponse",
        "ShareAcknowledgeResponse",
        "ShareFetchResponse",
    }


def damaged(data: bytes, rng: random.Random) -> Iterator[bytes]:
    for cut in range(len(data)):
        yield data[:cut]
    yield data + b"\0"
    for _ in range(40 * SOAK if data else 0):
        made = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            made[rng.randrange(len(made))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        yield bytes(made)


def test_damaged_bodies_are_declined_or_read_as_the_decoder_does() -> None:
    rng = random.Random(7)
    refused = 0
    for info, is_request, version, program, data in list(vectors())[:: 1 if SOAK > 1 else 17]:
        if len(data) > 400:
            continue
        for bad in damaged(data, rng):
            found = read(program, bad)
            if found is None:
                continue
            want = decoded(info, is_request, version, bad)
            assert want is not False, (info.name, version, bad.hex())
            assert agrees(found, want), (info.name, version, bad.hex())
            refused += 1
    assert refused > 50 or not NATIVE


def test_random_bytes() -> None:
    rng = random.Random(3)
    programs = [program for *_, program, _ in vectors()]
    for _ in range(3000 * SOAK):
        data = rng.randbytes(rng.randint(0, 120))
        made = read(rng.choice(programs), data.replace(b"\xff", b"\0"))
        assert made is None or len(made) <= 120


# -- records in partitions


def fetched(records: bytes | None) -> tuple[MessageInfo, FetchResponse]:
    partition = PartitionData(partition_index=3, high_watermark=9, records=records)
    topic = FetchableTopicResponse(topic="orders", partitions=[partition])
    return REGISTRY.get("FetchResponse"), FetchResponse(responses=[topic])


def batch() -> bytes:
    made = BatchBuilder()
    for value in (b"one", b"two"):
        made.append(None, value)
    return bytes(made.build())


def old_message() -> bytes:
    """A message of magic 1 without key and value; counting does not look at its checksum."""
    body = bytes(4) + b"\1\0" + bytes(8) + b"\xff" * 8
    return bytes(8) + len(body).to_bytes(4, "big") + body


RECORDS: Final = {
    "null": None,
    "empty": b"",
    "a batch": batch(),
    "two batches": batch() * 2,
    "old messages": old_message() * 2,
    "old messages behind a batch": batch() + old_message(),
    "a truncated batch": batch() + batch()[:-1],
    "a truncated header": batch() + batch()[:11],
    "a length below the least": batch() + bytes(8) + b"\0\0\0\x0d" + bytes(20),
    "a batch shorter than its header": bytes(8) + b"\0\0\0\x10\0\0\0\0\x02" + bytes(20),
    "an unknown magic": batch()[:16] + b"\x03" + batch()[17:],
    "a count below zero": batch()[:57] + b"\xff" * 4 + batch()[61:],
    "more records than an int32 counts": (batch()[:57] + b"\x7f\xff\xff\xff" + batch()[61:]) * 2,
}


@pytest.mark.parametrize("what", RECORDS)
def test_records_are_counted_as_by_the_decoder(what: str) -> None:
    info, message = fetched(RECORDS[what])
    data = bytes(message.encode(11))
    program = program_of(info, False, 11)
    assert program is not None
    found = read(program, data)
    want = rows_of(block_of(row_of(info, False, 11, message), TopicNames()))
    assert agrees(found, want)
    assert (found is not None) == NATIVE
    columns = want[0][-1]
    counted = count(RecordsField(TopicNames().topic("orders"), 3, RECORDS[what] or b""))
    assert columns[NAMES.index("batches")][0] == counted.batches.to_bytes(4, "little")
    assert (columns[NAMES.index("records")] is None) == (counted.records is None)


# -- rows, in C and in Python


TOPICS: Final = TopicNames()
NAMED: Final = [TOPICS.topic("a"), TOPICS.topic("b"), TOPICS.topic(None, b"i" * 16)]
NAMED.append(TOPICS.topic("other name", b"i" * 16))  # another object, the same key
VALUES: Final = st.none() | st.integers(-(1 << 15), (1 << 15) - 1)
ENTRY: Final = st.tuples(
    st.sampled_from(NAMED),
    st.integers(0, 3) | st.integers(-(1 << 31), (1 << 31) - 1),
    st.sampled_from([None, "g", "h"]),
    st.dictionaries(st.integers(0, COLUMNS - 1), VALUES, max_size=5),
    st.none() | st.text(max_size=3),
    st.integers(0, (1 << COLUMNS) - 1),
)
ENTRIES: Final = st.lists(ENTRY, max_size=12)
TEXT_AT: Final = NAMES.index("metadata")


def block(module: Any, entries: list[Any], group: str | None) -> Any:
    made = module.Block()
    made.group = group
    for topic, partition, its_group, values, text, mask in entries:
        values = {at: value for at, value in values.items() if WIDTHS[at]}
        columns, numbers = (*values, TEXT_AT), (*values.values(), text)
        made.add(topic, partition, its_group, columns, numbers, mask)
    return made


@settings(max_examples=40 * SOAK)
@given(
    st.lists(
        st.tuples(ENTRIES, ENTRIES, ENTRIES, st.booleans(), st.sampled_from([None, "g"])),
        max_size=3,
    ),
    st.sets(st.tuples(st.sampled_from([topic.key for topic in NAMED]), st.integers(0, 3))),
    st.integers(0, (1 << COLUMNS) - 1),
)
def test_rows(exchanges: list[Any], forgotten: set[Any], mask: int) -> None:
    made: list[Any] = []
    for module in (partition_blocks, TWIN):
        rows = module.Rows()
        counts = []
        for requested, listed, answered, is_fetch, group in exchanges:
            request = block(module, listed, group)
            session = block(module, requested, None).merged(request, forgotten)
            assert session is not request
            response = block(module, answered, None)
            counts.append(rows.add(request, response, session if is_fetch else None, mask))
            counts.append(rows.add(None, response, None, 0))
        assert len(rows) == sum(counts)
        made.append((counts, shown(rows.take(WIDTHS))))
        assert len(rows) == 0
    assert made[0] == made[1]


def test_many_partitions_of_one_exchange() -> None:
    """Rows are found by a hash: a million comparisons would take seconds, and a square of them."""
    counts = []
    for _ in range(2):
        rows, request, response = Rows(), Block(), Block()
        for partition in range(30_000):
            request.add(NAMED[0], partition, None, (0,), (partition,), 1)
            response.add(NAMED[0], 29_999 - partition, "g", (7,), (partition,), 1 << 7)
            response.add(NAMED[0], partition, None, (7,), (partition,), 1 << 7)
        session = Block().merged(request, set()).merged(request, {("a", 1)})
        counts.append(rows.add(request, response, session, 1))
    assert counts == [60_000, 60_000]


def test_a_session_shows_columns_of_the_version_of_its_exchange() -> None:
    """A partition keeps what versions lack, with its default: current_leader_epoch, from 9 on."""
    partition = FetchPartition(partition=3, fetch_offset=5, partition_max_bytes=7)
    message = FetchRequest(topics=[FetchTopic(topic="orders", partitions=[partition])])
    info = REGISTRY.get("FetchRequest")
    found = block_of(row_of(info, True, 7, message), TopicNames())
    program = program_of(info, True, 7)
    assert program is not None
    for each in (found, read(program, bytes(message.encode(7)))):
        if each is None:
            continue
        epochs = []
        for version in (7, 9):
            rows = Rows()
            rows.add(None, None, each, session_mask(version))
            epochs.append(rows.take(WIDTHS)[-1][NAMES.index("current_leader_epoch")])
        assert epochs == [None, (bytearray(b"\xff" * 4), None)]


@pytest.mark.parametrize("module", [partition_blocks, TWIN], ids=["as built", "python"])
def test_what_is_refused(module: Any) -> None:
    made = module.Block()
    with pytest.raises(ValueError, match="as many values as columns"):
        made.add(NAMED[0], 1, None, (1, 2), (1,), 0)
    with pytest.raises(ValueError, match="invalid column 19"):
        made.add(NAMED[0], 1, None, (19,), (1,), 0)
    with pytest.raises(ValueError, match="expects 19 widths"):
        module.Rows().take(b"")


def test_what_c_refuses() -> None:
    if not NATIVE:
        return  # the version in Python takes any program: it reads nothing
    reader = partition_blocks.Reader(TopicNames().topic, count_records)
    program = Program(False, ((0, 4, 0, False, None),), ())
    with pytest.raises(IndexError):
        reader.read(program, b"", 1, 1)
    for op, size in ((18, 0), (-1, 0), (6, 0), (10, 0), (13, 3), (16, 0), (0, -1)):
        with pytest.raises(ValueError, match="invalid step"):
            Program(False, ((op, size, 0, False, None),), ())
    with pytest.raises(ValueError, match="invalid column"):
        Program(False, (), ((19, 1, True),))
