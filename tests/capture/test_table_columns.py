"""Compares `exchanges` and `records` built column by column, and tables read together, with the
rows of decoded messages, each table read alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkawire.capture import tables
from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.frames.decoding import InFlightRequest, RawFrame
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.tables.arrow.record_columns import RecordColumns
from kafkawire.capture.tables.arrow.schemas import batches
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.body_facts import BodyFacts, body_facts_of
from kafkawire.capture.tables.extraction.body_reader import Reader
from kafkawire.capture.tables.extraction.entities import SPECIAL
from kafkawire.capture.tables.extraction.messages import MessageFormat
from kafkawire.capture.tables.extraction.record_batches import (
    CorruptRecords,
    RecordsField,
    batches_in,
)
from kafkawire.errors import DecodeError
from kafkawire.messages import REGISTRY
from kafkawire.primitives import MessageInfo
from tests.conftest import SHARED, missing
from tests.vectors import by_message

from . import truth

FILES = [truth.capture_of(path) for path in truth.captures()]
VARIANTS = sorted((SHARED / "captures" / "variants").glob("*.pcap*"))
SETS = [[path] for path in [*FILES, *VARIANTS]] + [FILES[:5], FILES[5:]]
COLUMNAR = ("exchanges", "partitions", "records")


def named(files: Sequence[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files)} files"


def by_rows(files: Sequence[Path], name: str) -> pa.Table:
    """A table built of decoded messages, row by row."""
    table = tables.TABLES[name]
    context = Context(Traffic(list(files)))
    found = list(batches(table.columns, table.rows(context), 512, context.name_topics))
    return pa.Table.from_batches(found, schema=table.schema)


def read_alone(files: Sequence[Path], name: str) -> pa.Table:
    found = list(tables.read(list(files), name))
    for batch in found:
        batch.validate(full=True)
        assert 0 < len(batch) <= tables.BATCH_ROWS
    return pa.Table.from_batches(found, schema=tables.TABLES[name].schema)


def read_together(
    files: Sequence[Path], names: Sequence[str], **options: Any
) -> dict[str, pa.Table]:
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    for name, batch in tables.read_tables(list(files), names, **options):
        found[name].append(batch)
    return {
        name: pa.Table.from_batches(each, schema=tables.TABLES[name].schema)
        for name, each in found.items()
    }


def differences(one: pa.Table, other: pa.Table) -> Iterator[tuple[int, str, Any, Any]]:
    if not one.equals(other):  # or strings that no program can compare: then the rows are
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        for at, (mine, theirs) in enumerate(pairs):
            yield from (
                (at, key, mine[key], theirs[key]) for key in mine if mine[key] != theirs[key]
            )


@pytest.mark.parametrize("files", SETS, ids=named)
def test_columns_equal_rows_of_decoded_messages(files: list[Path]) -> None:
    both = read_together(files, COLUMNAR)
    for name in COLUMNAR:
        want = by_rows(files, name)
        assert list(differences(read_alone(files, name), want)) == []
        assert list(differences(both[name], want)) == []


@pytest.mark.parametrize("files", [*SETS[:6], *SETS[-2:]], ids=named)
def test_tables_read_together_equal_tables_read_alone(files: list[Path]) -> None:
    names = [*tables.TABLES, "records"]
    for name, found in read_together(files, names).items():
        assert list(differences(found, read_alone(files, name))) == [], name


def test_a_capture_is_read_once_if_topic_names_come_first() -> None:
    (file,) = (path for path in FILES if path.name.startswith("kcat-kf"))
    read: list[int] = []
    read_together([file], list(tables.TABLES), watch=lambda size, _: read.append(size))
    assert sum(read) == file.stat().st_size


def test_late_topic_names_are_looked_up_once_for_all_tables() -> None:
    """A tail of a capture whose names come behind their ids: two passes, for any tables."""
    (file,) = (path for path in FILES if path.name.startswith("ck-848"))
    want = {name: by_rows([file], name) for name in COLUMNAR}
    assert None not in want["records"].column("topic").to_pylist()
    read: list[int] = []
    small = read_together([file], COLUMNAR, batch_rows=1, watch=lambda size, _: read.append(size))
    for name in COLUMNAR:
        assert list(differences(small[name], want[name])) == []
    assert sum(read) in (file.stat().st_size, 2 * file.stat().st_size)


def test_an_unknown_table() -> None:
    with pytest.raises(KeyError, match="offsets"):
        tables.read_tables(FILES[0], ["exchanges", "offsets"])


# -- facts of bodies, against those of decoded messages

API_SIDES = [
    (info, is_request)
    for key in range(100)
    for info, is_request in ((REGISTRY.request(key), True), (REGISTRY.response(key), False))
    if info is not None
]


def formats(info: MessageInfo, is_request: bool) -> Iterator[tuple[MessageFormat, dict[str, Any]]]:
    for row in by_message("messages").get(info.name, []):
        asked = InFlightRequest(info.api_key or 0, row["version"], 1, None, 1, 1)
        yield MessageFormat(asked, is_request), row


def decoded(info: MessageInfo, is_request: bool, version: int, data: bytes) -> Row | None:
    try:
        message = REGISTRY.load(info.name).decode(data, version)
    except DecodeError:
        return None
    direction = "request" if is_request else "response"
    name = info.name.removesuffix("Request").removesuffix("Response")
    return Row(
        1, 1, direction, len(data), Status.OK, "", info.api_key, name, version, 1, None, version,
        message,
    )  # fmt: skip


def comparable(facts: BodyFacts, is_request: bool) -> list[Any]:
    session = facts.session
    return [
        facts.status,
        {topic.key for topic in facts.topics},
        list(dict.fromkeys(topic.name or topic.id_text for topic in facts.topics)),
        facts.groups,
        facts.transactional_ids,
        facts.error_codes,
        facts.throttle_time_ms,
        [(topic.key, numbers) for topic, numbers in facts.partitions] if is_request else None,
        [(one.topic.key, one.partition, one.data) for one in facts.fields],
        session and (session.id, session.error_code),
        session and is_request and (session.epoch, list(session.listed), session.forgotten),
    ]


def extracted(
    format: MessageFormat, names: TopicNames, data: bytes, is_request: bool
) -> BodyFacts | None:
    """Extract facts, a second time where nulls have to be allowed first."""
    layout = format.layout
    assert layout is not None
    for _ in range(2):
        reader = Reader(names, True)
        facts = reader.read(layout, data, 0, 1 << 20, is_request, format.is_fetch)
        if facts is not None:
            return facts
        for step in reader.unproven_nulls:
            step.allows_null = True
    return None


def test_facts_of_vectors_are_those_of_their_messages() -> None:
    taken = count = 0
    for info, is_request in API_SIDES:
        for format, row in formats(info, is_request):
            count += 1
            data = bytes.fromhex(row["hex"])
            opened = decoded(info, is_request, row["version"], data)
            if format.layout is None or opened is None:
                continue
            names, other = TopicNames(), TopicNames()
            facts = extracted(format, names, data, is_request)
            if facts is not None:
                taken += 1
                other.learn(opened.message, row["version"])  # type: ignore[arg-type]
                assert comparable(facts, is_request) == comparable(
                    body_facts_of(opened, other, True), is_request
                ), row
                assert known(names) == known(other)
    assert taken > count // 3


def known(names: TopicNames) -> dict[bytes, str | None]:
    return {id: topic.name for id, topic in names._by_id.items() if topic.name}


def test_no_facts_of_a_body_that_the_decoder_refuses() -> None:
    refused = 0
    for info, is_request in API_SIDES:
        for format, row in list(formats(info, is_request))[::25]:
            data = bytes.fromhex(row["hex"])
            if format.layout is None or len(data) > 300:
                continue
            for cut in (*range(len(data)), len(data) + 1):
                bad = (data + b"\0")[:cut]
                if decoded(info, is_request, row["version"], bad) is None:
                    refused += 1
                    names = TopicNames()
                    reader = Reader(names, True)
                    assert (
                        reader.read(format.layout, bad, 0, 1 << 20, is_request, format.is_fetch)
                        is None
                    )
                    assert known(names) == {}, (row, cut)
    assert refused > 500


def test_most_apis_are_read_without_decoding() -> None:
    """Others have a struct outside an array, or a field whose meaning depends on another."""
    left = {
        info.name
        for info, is_request in API_SIDES
        for format, row in formats(info, is_request)
        if format.layout is None
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


# -- records of many fields at once


def fields_of(path: Path) -> list[RecordsField]:
    found: list[RecordsField] = []
    context = Context(Traffic([path]))
    for item in context.traffic.raw_frames():
        if not isinstance(item, Ended) and isinstance(item.item, RawFrame):
            row = item.item.decode()
            found += body_facts_of(row, context.names, True).fields
    return found


def one_by_one(fields: Iterable[RecordsField]) -> list[tuple[int, bytes | None]]:
    return [
        (record.offset, record.value)
        for field in fields
        for found in batches_in(field)
        if not isinstance(found, CorruptRecords)
        for record in found[1]
    ]


def at_once(fields: Iterable[RecordsField]) -> list[tuple[int, bytes | None]]:
    columns = RecordColumns(lambda: None)
    for field in fields:
        columns.fields.add(
            field, "a.pcap", 1, NO_TIME, 0, "10.0.0.1:5", "10.0.0.2:9092", "produce", None, 7
        )
    made = list(columns.batches())
    assert list(columns.batches()) == []
    for batch in made:
        batch.validate(full=True)
    rows = [row for batch in made for row in batch.to_pylist()]
    return [(row["offset"], row["value"]) for row in rows]


BROKEN = {
    "a wrong checksum": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "an unknown magic": lambda data: data[:16] + b"\x07" + data[17:],
    "a length of nothing": lambda data: data[:8] + bytes(4) + data[12:],
    "a cut batch": lambda data: data[:-3],
    "less than a header": lambda data: data[:9],
    "bytes behind the last batch": lambda data: data + b"\0\0\0\0\0\0\0\0\x7f",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", ["ck-txn", "fg-max-v0.11.0"])
def test_a_corrupt_field_among_valid_ones(name: str, what: str) -> None:
    found = [path for path in FILES if path.name == f"{name}.pcap"]
    if not found:
        missing(f"{name}.pcap, which is beside the repository,")
    fields = fields_of(found[0])[:12]
    assert len(fields) >= 4
    good = one_by_one(fields)
    assert at_once(fields) == good
    for at in (0, 2, len(fields) - 1):
        bad = list(fields)
        bad[at] = bad[at]._replace(data=BROKEN[what](bad[at].data))
        want = one_by_one(bad)
        assert at_once(bad) == want
        assert (len(want) < len(good)) == (what != "bytes behind the last batch")
