"""What is read from the bytes of bodies is what the decoded messages have, and rows merged in C are
those of the Python twin.

Without a compiler no body is read without the decoder, and these tests say that the rest holds.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.capture.exchanges.topic_ids import OWN_NAMES, Topic, TopicNames
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.tables.arrow.partition_arrays import SCHEMA, WIDTHS
from kafkawire.capture.tables.extraction import blocks
from kafkawire.capture.tables.extraction.blocks import (
    COLUMNS,
    ENTITIES,
    FIELDS,
    PARTITION_VALUES,
    Block,
    Bodies,
    Program,
    Reader,
    Rows,
)
from kafkawire.capture.tables.extraction.body_facts import NONE, BodyFacts, body_facts_of
from kafkawire.capture.tables.extraction.decoded_partitions import (
    HAS_PARTITIONS,
    block_of,
    count_records,
    session_mask,
)
from kafkawire.capture.tables.extraction.entities import SPECIAL
from kafkawire.capture.tables.extraction.messages import facts_of
from kafkawire.capture.tables.extraction.programs import program_of
from kafkawire.capture.tables.extraction.record_batches import RecordsField, count
from kafkawire.capture.tables.extraction.steps import NAMES
from kafkawire.capture.tables.partitions import COLUMNS as TABLE
from kafkawire.errors import DecodeError
from kafkawire.messages import REGISTRY
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkawire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkawire.primitives import Message, MessageInfo
from kafkawire.protocol import ApiKey
from kafkawire.records import BatchBuilder
from tests.fuzzing import SOAK
from tests.twins import twin
from tests.vectors import by_message

TWIN: Final = twin(blocks)
NATIVE: Final = not str(blocks.__file__).endswith(".py")
ELEMENTS: Final = 1 << 20

ALL: Final = ENTITIES | PARTITION_VALUES | FIELDS

SIDES: Final = [
    (info, is_request)
    for key in range(100)
    for info, is_request in ((REGISTRY.request(key), True), (REGISTRY.response(key), False))
    if info is not None
]


def wanted_of(info: MessageInfo, is_request: bool) -> int:
    return ALL if (info.api_key, is_request) in HAS_PARTITIONS else ENTITIES | FIELDS


def listed(found: Any) -> list[Any]:
    """List values by their indexes; topics become comparable."""
    values, indexes = found
    assert len(set(map(id, values))) == len(values)
    plain = [(one.name, one.id) if isinstance(one, Topic) else one for one in values]
    return [plain[index] for index in array("i", bytes(indexes))]


def shown(taken: Any) -> list[Any]:
    """Make rows comparable; what comes of numbers that are null does not matter."""
    return [listed(taken[0]), listed(taken[1]), *taken[2:]]


def bodies_of(bodies: Any) -> list[Any]:
    """Make what bodies show comparable."""
    items, buffers, numbers = bodies.take()
    return [[listed(each) for each in items], *buffers, numbers]


def rows_of(block: Any) -> list[Any]:
    rows = Rows()
    rows.add(block, None, None, 0)
    return [shown(rows.take(WIDTHS)), None if block is None else block.group]


def program(info: MessageInfo, is_request: bool, version: int) -> Program | None:
    cls = REGISTRY.load(info.name)
    return program_of(cls, info.api_key or 0, is_request, version, info.is_flexible(version))


def read(program: Program, data: bytes, names: TopicNames, wanted: int = ALL) -> Block | None:
    reader = Reader(names.topic, names.add, names.learned, count_records, RecordsField)
    return reader.read(program, data, 0, ELEMENTS, wanted)


def row_of(info: MessageInfo, is_request: bool, version: int, message: Message) -> Row:
    direction = "request" if is_request else "response"
    return Row(
        1, 1, direction, 1, Status.OK, "", info.api_key, info.name, version, 1, None, version,
        message,
    )  # fmt: skip


def known(names: TopicNames) -> dict[bytes, str | None]:
    """Return the names of ids that messages stated."""
    by_id = names._by_id
    return {id: one.name for id, one in by_id.items() if one.name and id not in OWN_NAMES}


def comparable(facts: BodyFacts, names: TopicNames) -> list[Any]:
    session, block = facts.session, facts.block
    is_empty = block is None or not (len(block) or block.group)
    entities = facts.entities
    assert entities is not None
    topics, *others, _ = entities.entities
    bodies = Bodies(2)
    bodies.add(entities, None, None, False)
    return [
        [topic.key for topic in topics],
        [topic.name for topic in topics],
        others,
        [(one.topic.key, one.partition, one.data) for one in facts.fields],
        session and (session.id, session.error_code),
        session and len(session.listed) and (session.epoch, rows_of(session.listed)),
        rows_of(None if is_empty else block),
        bodies_of(bodies) if block else [],
        known(names),
    ]


def decoded(info: MessageInfo, is_request: bool, version: int, data: bytes) -> Any:
    """Return the facts of the decoded message; False if the decoder refuses it."""
    try:
        message = REGISTRY.load(info.name).decode(data, version)
    except DecodeError:
        return False
    names = TopicNames()
    names.learn(message, version)
    row = row_of(info, is_request, version, message)
    facts = body_facts_of(row, names, wanted_of(info, is_request))
    if facts.session is not None and facts.session.forgotten:
        return None
    return comparable(facts, names)


def found_in(info: MessageInfo, is_request: bool, program: Program, data: bytes) -> Any:
    """Return the facts of a body that is read without the decoder; None if it is declined."""
    names = TopicNames()
    block = read(program, data, names)
    if block is None:
        assert known(names) == {}
        return None
    is_fetch = info.api_key == ApiKey.FETCH
    facts = facts_of(block, wanted_of(info, is_request), is_request, is_fetch)
    return comparable(facts, names)


def vectors() -> Iterator[tuple[MessageInfo, bool, int, Program, bytes]]:
    for info, is_request in SIDES:
        for row in by_message("messages").get(info.name, []):
            made = program(info, is_request, row["version"])
            if made is not None:
                yield info, is_request, row["version"], made, bytes.fromhex(row["hex"])


def test_columns_are_those_of_the_table() -> None:
    names = [column.name for column in TABLE]
    assert names[-COLUMNS:] == list(NAMES)
    assert blocks.COLUMNS == TWIN.COLUMNS == COLUMNS
    for name in ("MAX_NUMBERS", "NO_SESSION", "ENTITIES", "PARTITION_VALUES", "FIELDS"):
        assert getattr(blocks, name) == getattr(TWIN, name)
    assert [SCHEMA.field(name).type.bit_width // 8 for name in ("offset", "batches")] == [8, 4]


def test_vectors() -> None:
    read_so = count_of = 0
    for info, is_request, version, program, data in vectors():
        count_of += 1
        found = found_in(info, is_request, program, data)
        read_so += found is not None
        if found is not None:
            assert found == decoded(info, is_request, version, data), (info.name, version)
    assert count_of > 2000
    assert read_so > count_of // 2 or not NATIVE


def test_only_what_is_wanted() -> None:
    """What is not wanted is read over; the rest, and what is declined, is the same."""
    for _, _, _, program, data in list(vectors())[::3]:
        names = TopicNames()
        whole = read(program, data, names)
        for wanted in range(ALL):
            some_names = TopicNames()
            some = read(program, data, some_names, wanted)
            assert (some is None) == (whole is None)
            assert known(some_names) == known(names)
            if some is None or whole is None:
                continue
            is_valued = bool(wanted & PARTITION_VALUES)
            assert rows_of(some)[0] == rows_of(whole if is_valued else None)[0]
            one, all_of = some.entities, whole.entities
            is_named, has_fields = bool(wanted & ENTITIES), bool(wanted & FIELDS)
            assert one[1:5] == (all_of[1:5] if is_named else NOTHING[1:5])
            assert len(one[0]) == (len(all_of[0]) if is_named else 0)
            assert len(one[5]) == (len(all_of[5]) if has_fields else 0)


NOTHING: Final[Any] = ([], [], [], [], (NONE,) * blocks.MAX_NUMBERS, [])


def test_most_messages_have_a_program() -> None:
    """Others have a struct outside an array, or a field whose meaning depends on another."""
    left = {
        info.name
        for info, is_request in SIDES
        for version in range(info.first, info.last + 1)
        if program(info, is_request, version) is None
        and (info.api_key, "request" if is_request else "response") not in SPECIAL
    }
    assert left <= {
        "ConsumerGroupDescribeResponse",
        "ConsumerGroupHeartbeatResponse",
        "DescribeTopicPartitionsRequest",
        "DescribeTopicPartitionsResponse",
        "FetchSnapshotRequest",
        "FetchSnapshotResponse",
        "ShareAcknowledgeResponse",
        "ShareFetchResponse",
        "ShareGroupDescribeResponse",
        "ShareGroupHeartbeatResponse",
        "StreamsGroupDescribeResponse",
        "StreamsGroupHeartbeatRequest",
        "StreamsGroupHeartbeatResponse",
        "StreamsGroupTopologyDescriptionUpdateRequest",
        "UpdateRaftVoterRequest",
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
    read_so = 0
    for info, is_request, version, program, data in list(vectors())[:: 1 if SOAK > 1 else 43]:
        if len(data) > 400:
            continue
        for bad in damaged(data, rng):
            found = found_in(info, is_request, program, bad)
            if found is None:
                continue
            want = decoded(info, is_request, version, bad)
            assert want is not False, (info.name, version, bad.hex())
            assert found == want, (info.name, version, bad.hex())
            read_so += 1
    assert read_so > 50 or not NATIVE


def test_random_bytes() -> None:
    rng = random.Random(3)
    programs = [program for *_, program, _ in vectors()]
    for _ in range(3000 * SOAK):
        data = rng.randbytes(rng.randint(0, 120))
        made = read(rng.choice(programs), data.replace(b"\xff", b"\0"), TopicNames())
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
    made = program(info, False, 11)
    assert made is not None
    found = found_in(info, False, made, data)
    assert (found is not None) == NATIVE
    assert found in (None, decoded(info, False, 11, data))
    want = rows_of(block_of(row_of(info, False, 11, message), TopicNames()))
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
    for module in (blocks, TWIN):
        rows = module.Rows()
        counts = []
        for requested, listed, responded, is_fetch, group in exchanges:
            request = block(module, listed, group)
            session = block(module, requested, None).merged(request, forgotten)
            assert session is not request
            response = block(module, responded, None)
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
    made = program(info, True, 7)
    assert made is not None
    for each in (found, read(made, bytes(message.encode(7)), TopicNames())):
        if each is None:
            continue
        epochs = []
        for version in (7, 9):
            rows = Rows()
            rows.add(None, None, each, session_mask(version))
            epochs.append(rows.take(WIDTHS)[-1][NAMES.index("current_leader_epoch")])
        assert epochs == [None, (bytearray(b"\xff" * 4), None)]


@pytest.mark.parametrize("module", [blocks, TWIN], ids=["as built", "python"])
def test_what_is_refused(module: Any) -> None:
    made = module.Block()
    with pytest.raises(ValueError, match="as many values as columns"):
        made.add(NAMED[0], 1, None, (1, 2), (1,), 0)
    with pytest.raises(ValueError, match="invalid column 19"):
        made.add(NAMED[0], 1, None, (19,), (1,), 0)
    with pytest.raises(ValueError, match="expects 19 widths"):
        module.Rows().take(b"")
    with pytest.raises(ValueError, match="invalid width 3"):
        module.Rows().take(b"\3" * COLUMNS)
    with pytest.raises(ValueError, match="at most 8 numbers"):
        made.identify([], [], [], [], (0,) * 9)
    for numbers in (-1, 9):
        with pytest.raises(ValueError, match="at most 8 numbers"):
            module.Bodies(numbers)


def test_what_c_refuses() -> None:
    if not NATIVE:
        return  # the version in Python takes any program: it reads nothing
    names = TopicNames()
    program = Program(False, ((0, 4, 0, False, None, 0),), (), False)
    with pytest.raises(IndexError):
        Reader(names.topic, names.add, names.learned, count_records, RecordsField).read(
            program, b"", 1, 1, ALL
        )
    with pytest.raises(TypeError, match="class of tuples"):
        Reader(names.topic, names.add, names.learned, count_records, dict)  # type: ignore[arg-type]
    invalid = ((19, 0, 0), (-1, 0, 0), (6, 0, 0), (10, 0, 0), (13, 3, 0), (16, 0, 0), (0, -1, 0))
    roles = ((0, 4, 5), (1, 0, 4), (1, 0, 7), (9, 16, 1), (18, 2, 1), (18, 3, 5), (18, 4, 14))
    for op, size, role in (*invalid, *roles):
        with pytest.raises(ValueError, match="invalid step"):
            Program(False, ((op, size, 0, False, None, role),), (), False)
    with pytest.raises(ValueError, match="invalid column"):
        Program(False, (), ((19, 1, True),), False)


@pytest.mark.parametrize("module", [blocks, TWIN], ids=["as built", "python"])
def test_requested_partitions_by_topic(module: Any) -> None:
    request, bodies = module.Block(), module.Bodies(1)
    for topic, partition in ((0, 2), (1, 0), (0, 1), (3, 5), (2, 5), (2, 70_000)):
        request.add(NAMED[topic], partition, None, (), (), 0)
        bodies.add(request, None, None, False)
    bodies.add(module.Block(), request, None, False)
    bodies.add(request, None, module.Block(), True)  # a session without partitions
    bodies.add(None, None, request, True)
    assert len(bodies) == 9
    items, buffers, body_numbers = bodies.take()
    *ends, partition_ends, partitions, is_fetch, complete = buffers
    found = array("i", bytes(ends[-1]))
    assert list(found) == [0, 1, 3, 5, 8, 11, 14, 14, 14, 17]
    assert listed(items[-1])[-3:] == [("a", None), ("b", None), ("other name", b"i" * 16)]
    assert items[-1][0] == [NAMED[0], NAMED[1], NAMED[3]]
    stop = array("i", bytes(partition_ends))
    numbers = array("i", bytes(partitions))
    last = [list(numbers[stop[at] : stop[at + 1]]) for at in range(14, 17)]
    assert last == [[2, 1], [0], [5, 5, 70_000]]
    assert (is_fetch, complete) == (bytes(7) + b"\1\1", bytes(7) + b"\1\1")
    assert body_numbers == ((bytes(9 * 4), bytes(9)),)
    assert len(bodies) == 0
    assert bodies_of(bodies)[0] == [[], [], [], [], []]


IDENTIFIED: Final = st.tuples(
    st.lists(st.sampled_from(NAMED), unique_by=id),
    st.lists(st.text(max_size=2), unique=True, max_size=20),
    st.lists(st.text(max_size=2), unique=True, max_size=3),
    st.lists(st.integers(-(1 << 15), (1 << 15) - 1), unique=True, max_size=20),
    st.lists(st.sampled_from([NONE, 0, 100, (1 << 31) - 1]), max_size=3).map(tuple),
)
SIDE: Final = st.none() | st.tuples(ENTRIES, IDENTIFIED)


def identified(module: Any, side: Any) -> Any:
    if side is None:
        return None
    made = block(module, side[0], None)
    made.identify(*side[1])
    return made


@settings(max_examples=40 * SOAK)
@given(st.lists(st.tuples(SIDE, SIDE, st.none() | ENTRIES, st.booleans()), max_size=4))
def test_bodies(exchanges: list[Any]) -> None:
    """And they can be filled again once they were taken."""
    made: list[Any] = []
    for module in (blocks, TWIN):
        bodies = module.Bodies(3)
        found = []
        for _ in range(2):
            for *sides, requested, complete in exchanges:
                session = None if requested is None else block(module, requested, None)
                bodies.add(*[identified(module, side) for side in sides], session, complete)
            assert len(bodies) == len(exchanges)
            found.append(bodies_of(bodies))
        assert found[0] == found[1]
        made.append(found[0])
    assert made[0] == made[1]


def test_many_entities() -> None:
    """They are found by a hash, as rows are."""
    names = [f"group {at}" for at in range(30_000)]
    for module in (blocks, TWIN):
        request, response, bodies = module.Block(), module.Block(), module.Bodies(0)
        request.identify([], names[:20_000], [], [], ())
        response.identify([], names[10_000:], [], [], ())
        bodies.add(request, response, None, False)
        assert bodies_of(bodies)[0][1] == names


def test_names_are_learned_from_whole_bodies_only() -> None:
    """And a topic of a name and an id is that of the id once the name was learned."""
    info = REGISTRY.get("MetadataResponse")
    topic = MetadataResponseTopic(name="orders", topic_id=b"i" * 16)
    topic.partitions = [MetadataResponsePartition(partition_index=1)]
    data = bytes(MetadataResponse(topics=[topic]).encode(12))
    made = program(info, False, 12)
    assert made is not None
    names = TopicNames()
    reader = Reader(names.topic, names.add, names.learned, count_records, RecordsField)
    assert reader.read(made, data[:-1], 0, ELEMENTS, ALL) is None
    assert known(names) == {}
    for _ in range(2):
        block = reader.read(made, data, 0, ELEMENTS, ALL)
        assert (block is not None) == NATIVE
        if block is not None:
            assert known(names) == {b"i" * 16: "orders"}
            assert rows_of(block)[0][0] == [("orders", b"i" * 16)]
