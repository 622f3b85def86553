"""The same files read by Kafka's own dump tool: batches, records, messages, entries of indexes.

The tool reads what our writers made of Kafka's own vectors, and prints what we print.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kafkawire.log import RecordRow
from kafkawire.messages import REGISTRY
from kafkawire.protocol.json_form import Json
from kafkawire.protocol.log_records import LogPart, encode_log_message
from kafkawire.protocol.log_types import COORDINATED, FRAMED, TOPICS, InternalLog
from kafkawire.records import BatchBuilder, Compression
from kafkawire.transactions.states import TransactionState
from tests import golden
from tests.real.java import Installation

from . import written
from .written import TIME, rows

TOOL: Final = "org.apache.kafka.tools.DumpLogSegments"
OPTIONS: Final = {
    InternalLog.OFFSETS: "--offsets-decoder",
    InternalLog.TRANSACTIONS: "--transaction-log-decoder",
    InternalLog.SHARE: "--share-group-state-decoder",
    InternalLog.METADATA: "--cluster-metadata-decoder",
}
BEGINNING: Final = re.compile(
    r"\n(?=\| offset: |baseOffset: |offset: |timestamp: |version: |producerId: )"
)
RECORD: Final = re.compile(
    r"\| offset: (?P<offset>\d+) \w+: (?P<time>-?\d+) .* sequence: (?P<sequence>-?\d+) "
    r"headerKeys: \[(?P<headers>.*?)\] ?(?P<content>.*?)\n?$",
    re.DOTALL,
)
BATCH: Final = re.compile(
    r"baseOffset: (?P<base_offset>\d+) .* producerId: (?P<producer_id>-?\d+) .* "
    r"position: (?P<position>\d+) .* compresscodec: (?P<codec>\w+) .* isvalid: (?P<valid>\w+)"
)
STATES: Final = {state.value: state.label for state in TransactionState}
REFUSED: Final = {
    "AccessControlRecord",
    "RemoveFeatureLevelRecord",
    "UnregisterControllerRecord",
}
"""Records that the tool's release reads no longer, or not yet."""
ALSO_CALLED: Final = {"producerEpoch": "epoch", "lastTimestamp": "timestamp"}
COMPARED: Final = {"offset", "position", "timestamp", "producerId", "lastOffset"}


@pytest.fixture(scope="session")
def kafka_tools(installation: Installation) -> Installation:
    """The jars of Apache Kafka."""
    return installation


class PrintedPart(NamedTuple):
    """A key or value as the tool prints it: type or version, and fields."""

    label: str
    data: Json


def dump(installation: Installation, path: Path, *options: str) -> list[str]:
    """Print a file with the tool, and split the output into records, batches and entries."""
    text = installation.run(TOOL, *options, "--files", str(path))
    return BEGINNING.split(text)[1:]


def printed_parts(text: str) -> list[PrintedPart | None]:
    """Read `key: {...} payload: {...}`; None for a tombstone's value."""
    made: list[PrintedPart | None] = []
    for part in re.split(r"(?:^| )(?:key|payload): (?=\{\"|<DELETE>)", text)[1:]:
        if part.startswith("<DELETE>"):
            made.append(None)
            continue
        printed = json.JSONDecoder().raw_decode(part)[0]
        label = printed["version"] if "version" in printed else printed["type"]
        made.append(PrintedPart(str(label), printed["data"]))
    return made


def ours(part: LogPart | None) -> PrintedPart | None:
    """Convert a key or value to the tool's form."""
    if part is None:
        return None
    assert part.message is not None, part.error
    is_key = (part.name or "").endswith("Key")
    data = plain(part.to_json()["message"])
    if part.name == "TransactionLogValue":  # the tool prints the state's name
        data["transactionStatus"] = STATES.get(
            data["transactionStatus"], str(data["transactionStatus"])
        )
    return PrintedPart(str(part.type if is_key else part.version), data)


def plain(value: Json) -> Json:
    """Remove what we add to Kafka's JSON form."""
    if isinstance(value, dict):
        return {
            key: plain(inner)
            for key, inner in value.items()
            if not key.endswith("Decoded") and key != "_unknownTaggedFields"
        }
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def vectors_of(log: InternalLog) -> list[tuple[bytes | None, bytes | None]]:
    """Return the keys and values of a log in Kafka's vectors."""
    made: list[tuple[bytes | None, bytes | None]] = []
    stems = set(COORDINATED.get(log, {}).values())
    for row in golden.rows("log_records"):
        raw, name = bytes.fromhex(row["hex"]), row["message"]
        if row["framing"] == "coordinator-key" and name.removesuffix("Key") in stems:
            made.append((raw, None))
        elif row["framing"] == "coordinator-value" and name.removesuffix("Value") in stems:
            key = name.removesuffix("Value") + "Key"
            made.append((encode_log_message(REGISTRY.load(key)(), REGISTRY.get(key).first), raw))
        elif row["framing"] == "metadata" and name in FRAMED.get(log, {}).values():
            made.append((None, raw))
    return made


def written_log(folder: Path, log: InternalLog) -> Path:
    """Write the vectors of a log into a segment, one batch each, all codecs."""
    topic = next(topic for topic, one in TOPICS.items() if one is log)
    path = folder / f"{topic}-0" / f"{0:020}.log"
    path.parent.mkdir()
    with path.open("wb") as out:
        for offset, (key, value) in enumerate(vectors_of(log)):
            builder = BatchBuilder(
                base_offset=offset, compression=list(Compression)[offset % len(Compression)]
            )
            builder.append(key, value, TIME + offset)
            out.write(builder.build())
    return path


def records_in(printed: list[str]) -> list[re.Match[str]]:
    return [match for match in map(RECORD.match, printed) if match is not None]


def records_of(path: Path) -> list[RecordRow]:
    return [row for row in rows(path) if isinstance(row, RecordRow)]


@pytest.mark.parametrize("log", OPTIONS)
def test_messages_of_internal_logs(
    log: InternalLog, kafka_tools: Installation, tmp_path: Path
) -> None:
    path = written_log(tmp_path, log)
    printed = records_in(dump(kafka_tools, path, "--print-data-log", OPTIONS[log]))
    refused: set[str | None] = set()
    for match, row in zip(printed, records_of(path), strict=True):
        assert (int(match["offset"]), int(match["time"])) == (row.offset, row.timestamp)
        assert row.decoded is not None
        key, value = row.decoded
        if "payload: Error at " in match["content"]:
            assert value is not None
            refused.add(value.name)
            continue
        parts = [value] if key is None else [key, value]
        assert printed_parts(match["content"]) == [ours(part) for part in parts], match["content"]
    assert refused <= REFUSED


def test_records_of_clients(kafka_tools: Installation, tmp_path: Path) -> None:
    path = written.partition(tmp_path / "orders-3").segment
    printed = dump(kafka_tools, path, "--print-data-log")
    for match, row in zip(records_in(printed), records_of(path), strict=True):
        assert row.key is not None
        assert row.value is not None
        assert match["content"] == f"key: {row.key.decode()} payload: {row.value.decode()}"
        assert match["headers"] == ",".join(name for name, _ in row.headers)
        assert int(match["sequence"]) == row.sequence
    batches = [match for match in map(BATCH.match, printed) if match is not None]
    first_rows = {row.position: row for row in records_of(path)}
    assert [int(match["position"]) for match in batches] == list(first_rows)
    for match, row in zip(batches, first_rows.values(), strict=True):
        assert int(match["base_offset"]) == row.base_offset
        assert int(match["producer_id"]) == row.producer_id
        assert match["codec"] == row.compression
        assert (match["valid"] == "true") is row.crc_valid


def test_the_tool_finds_our_indexes_in_order(kafka_tools: Installation, tmp_path: Path) -> None:
    made = written.partition(tmp_path / "orders-3")
    for suffix in ("index", "timeindex", "txnindex", "snapshot"):
        path = made.file(suffix)
        printed = [
            dict(re.findall(r"(\w+): (?:OptionalLong\[)?(-?\d+)", text))
            for text in dump(kafka_tools, path)
        ]
        assert len(printed) == len(rows(path)) > 0, suffix
        for fields, row in zip(printed, rows(path), strict=True):
            values = {name.replace("_", ""): value for name, value in row._asdict().items()}
            for name, value in fields.items():
                mine = values.get(ALSO_CALLED.get(name, name.lower()))
                assert mine is None or mine == int(value), (suffix, name)
            assert len(fields.keys() & COMPARED) >= 2, suffix
