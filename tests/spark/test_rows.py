"""Spark's rows are those of a single process, however files are split, ordered and distributed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import TABLES
from kafkawire.capture.tables import read as tables_read
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY
from kafkawire.spark import read, reading
from kafkawire.spark.decode import scratch
from kafkawire.spark.errors import BadOption
from tests.capture import wire
from tests.capture.dialogue import Sent, goodbye, hello, packets
from tests.capture.encapsulations import encapsulated, ip_packets, outer4, random_wrappers
from tests.capture.wire import Packet, ethernet, ipv4, pcap, tcp, udp
from tests.conftest import FIXTURES
from tests.fuzzing import SOAK
from tests.recordings import ANY_CAPTURE, own

from .conftest import counted, counted_sets, of_frame, rows_of

SPLITS = ("64m", "150k", "9k")
TABLES_OF_A_SET = len(TABLES) if SOAK > 1 else 3
"""Each run draws others; `make soak` reads each set for all tables."""


@pytest.fixture(scope="module")
def tables_of(sets: dict[str, list[str]]) -> dict[str, list[str]]:
    """Draw the tables for which a set is read in this run."""
    return {name: random.sample(sorted(TABLES), TABLES_OF_A_SET) for name in sets}


@pytest.mark.parametrize("table", TABLES)
def test_every_row_of_every_capture(
    spark: SparkSession,
    sets: dict[str, list[str]],
    tables_of: dict[str, list[str]],
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each size of splits has a third of the captures; that of one goes through Java.

    Each capture is read for TABLES_OF_A_SET tables, others in each run.
    """
    captures = {Path(file).resolve() for each in sets.values() for file in each}
    assert set(own(ANY_CAPTURE)) <= captures
    mine = sorted(name for name in sets if table in tables_of[name])
    shuffled = random.sample(mine, len(mine))
    through_java = random.randrange(len(SPLITS))
    for at, split in enumerate(SPLITS):
        chosen = [sets[name] for name in shuffled[at :: len(SPLITS)]]
        files = random.sample([file for each in chosen for file in each], sum(map(len, chosen)))
        through = scratch.chosen if at != through_java else lambda *_: None
        monkeypatch.setattr(reading, "chosen", through)
        frame = read(spark, files, table, splitBytes=split, sets="directory", partitions=3)
        assert counted(of_frame(frame)) == counted_sets(chosen, table), split


@pytest.mark.parametrize("table", ["exchanges", "connections", "group_events"])
def test_a_set_in_any_order_and_number_of_partitions(
    spark: SparkSession, sets: dict[str, list[str]], table: str
) -> None:
    (files,) = [files for name, files in sets.items() if name.endswith("mixed-a--rot")]
    want = counted(rows_of(files, table))
    for partitions in (1, 5):
        shuffled = random.sample(files, len(files))
        frame = read(spark, shuffled, table, splitBytes="40k", partitions=partitions)
        assert counted(of_frame(frame)) == want


@pytest.mark.parametrize("table", ["exchanges", "records"])
def test_sets_with_the_same_topic_ids(spark: SparkSession, tmp_path: Path, table: str) -> None:
    """Each set states its names, though one task decodes several."""
    recorded = (FIXTURES / "captures" / "ck-offsets-v6.pcap").read_bytes()
    files = [str(tmp_path / name / "one.pcap") for name in "abc"]
    for file in files:
        Path(file).parent.mkdir()
        Path(file).write_bytes(recorded)
    found = counted(of_frame(read(spark, files, table, sets="directory", partitions=2)))
    assert found == counted_sets([[file] for file in files], table)


# -- IP fragments

PAYLOAD = bytes.fromhex("0000001f0012000300000001000161000a6b61666b61776972650431")


def fragmented(seed: int) -> list[Packet]:
    """A capture whose larger packets are sent as IP fragments, out of order."""
    rng = random.Random(seed)
    (recorded,) = (path for path in (FIXTURES / "captures").glob("kcat-kf.pcap"))
    data = recorded.read_bytes()
    found: list[Packet] = []
    at = 24
    while at < len(data):
        seconds, fraction, captured, _ = (
            int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4, 8, 12)
        )
        frame = data[at + 16 : at + 16 + captured]
        time_ns = seconds * 1_000_000_000 + fraction * 1000
        found += [Packet(each, time_ns) for each in in_fragments(frame, rng, len(found))]
        at += 16 + captured
    return found


def in_fragments(frame: bytes, rng: random.Random, number: int) -> list[bytes]:
    link, header, body = frame[:14], frame[14:34], frame[34:]
    if len(body) < 64 or header[0] != 0x45:
        return [frame]
    cuts = sorted({0, *(8 * rng.randint(3, len(body) // 8 - 1) for _ in range(2))})
    pieces = []
    for start, end in zip(cuts, [*cuts[1:], len(body)], strict=True):
        more = 0x2000 if end < len(body) else 0
        size = (20 + end - start).to_bytes(2, "big")
        where = (more | start // 8).to_bytes(2, "big")
        new = header[:2] + size + number.to_bytes(2, "big") + where + header[8:]
        pieces.append(link + new + body[start:end])
    rng.shuffle(pieces)
    return pieces


def test_fragments_are_reassembled_across_splits(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "fragments.pcap"
    frames = fragmented(1)
    file.write_bytes(pcap(frames, magic=0xA1B23C4D))
    whole = rows_of([str(FIXTURES / "captures" / "kcat-kf.pcap")], "exchanges")
    assert len(frames) > 2 * len(whole)
    want = rows_of([str(file)], "exchanges")
    assert len(want) == len(whole)
    frame = read(spark, [str(file)], "exchanges", splitBytes="3k", partitions=3)
    assert counted(of_frame(frame)) == counted(want)


# -- tunnels, and packets that are not decoded

SKIPPED = (
    ethernet(bytes(100), 0x88E5),
    ethernet(outer4(bytes(80), 50)),
    ethernet(outer4(udp(1701, bytes(40)), 17)),
    ethernet(ipv4(tcp(1, 2, 3)))[:50],
    ethernet(ipv4(tcp(1, 2, 3), length=30)),
    ethernet(ipv4(bytes(16), fragment=0x2000, identification=9)),
    encapsulated(ipv4(bytes(16), fragment=0x2000, identification=9), ["vxlan", "mpls"]),
)


@pytest.mark.parametrize("table", ["exchanges", "problems"])
@pytest.mark.parametrize("split", ["4k", "64m"])
def test_tunnels_and_skipped_packets(
    spark: SparkSession, tmp_path: Path, table: str, split: str
) -> None:
    """Packets in tunnels are decoded, and what is skipped is added up over splits."""
    rng = random.Random(table)
    blocks, _ = wire.read((FIXTURES / "captures" / "kcat-kf.pcap").read_bytes())
    found: list[Packet] = []
    for packet in ip_packets(map(Packet, wire.packets_of(blocks))):
        data = encapsulated(packet.data, random_wrappers(rng, 2))
        found += [Packet(data), *map(Packet, rng.sample(SKIPPED, rng.randint(0, 2)))]
    large, small = tmp_path / "large.pcap", tmp_path / "small.pcap"
    large.write_bytes(pcap(found))
    port = encapsulated(ipv4(tcp(1, 2, 3, b"x")), ["vxlan"]).replace(b"\x12\xb5", b"\x39\xc5", 1)
    small.write_bytes(pcap([Packet(port), *map(Packet, SKIPPED)]))
    files, option = [str(large), str(small)], ["vxlan:14789"]
    want = [
        dict(row)
        for batch in tables_read(files, table, tunnels=option)
        for row in batch.to_pylist()
    ]
    frame = read(spark, files, table, splitBytes=split, partitions=3, tunnels="vxlan:14789")
    assert counted(of_frame(frame)) == counted(want)
    if table == "problems":
        assert len([row for row in want if row["kind"] == "skipped"]) == 2 * 6


# -- damaged files


def test_a_malformed_file_among_good_ones(spark: SparkSession, tmp_path: Path) -> None:
    good = str(FIXTURES / "captures" / "kcat-kf.pcap")
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"this is no capture at all")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((FIXTURES / "captures" / "ck-txn.pcap").read_bytes()[:-7])
    files = [str(bad), good, str(cut)]
    problems = of_frame(read(spark, files, "problems", sets="file"))
    reported = {row["file"]: row["error"] for row in problems if row["kind"] == "unreadable"}
    assert set(reported) == {str(bad), str(cut)}
    assert "not a capture file" in reported[str(bad)]
    exchanges = of_frame(read(spark, files, "exchanges", sets="file"))
    assert counted(row for row in exchanges if row["file"] == good) == counted(
        rows_of([good], "exchanges")
    )


def test_a_malformed_file_fails_the_job_with_fail_on_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = tmp_path / "b\u00e4d.pcap"
    bad.write_bytes(b"this is no capture at all")
    good = str(FIXTURES / "captures" / "kcat-kf.pcap")
    with pytest.raises(Exception, match=r"d\.pcap: .*not a capture file"):
        read(spark, [good, str(bad)], "exchanges", failOnError=True)
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(good).read_bytes()[:-7])
    with pytest.raises(Exception, match=r"Unreadable: .*cut\.pcap"):
        read(spark, [str(cut)], "exchanges", failOnError=True)


# -- filters


def test_filters_and_columns(spark: SparkSession) -> None:
    file = str(FIXTURES / "captures" / "ck-848.pcap")
    every = rows_of([file], "exchanges")
    topics = {topic for row in every for topic in row["topics"]}
    topic = sorted(topics)[0]
    middle = sorted(row["time_ns"] for row in every if row["time_ns"])[len(every) // 2]
    requested = read(
        spark, [file], columns=["correlation_id", "api_name"], apis="fetch", topics=topic,
        endTs=middle // 1_000_000_000 + 1,
    )  # fmt: skip
    assert requested.columns == ["correlation_id", "api_name"]
    want = [
        {"correlation_id": row["correlation_id"], "api_name": "Fetch"}
        for row in every
        if row["api_name"] == "Fetch"
        and topic in row["topics"]
        and row["time_ns"] < (middle // 1_000_000_000 + 1) * 1_000_000_000
    ]
    assert want
    assert counted(of_frame(requested)) == counted(want)


WHERE = [
    ("exchanges", "api == Fetch and latency > 100ms and topic ~ '*' and connection > 1"),
    ("partitions", "error == NONE and partition in (1, 2) and api != Metadata"),
    ("group_events", "group ~ '*' and client_address == 127.0.0.1"),
    ("problems", "not api ~ 'Prod*'"),
]


@pytest.mark.parametrize(("table", "where"), WHERE)
def test_where(spark: SparkSession, table: str, where: str) -> None:
    """The same rows as those of one process, by columns that are not requested."""
    file = str(FIXTURES / "captures" / "ck-848.pcap")
    want = [
        {"file": row["file"], "packet": row["packet"]}
        for batch in tables_read(file, table, where=where)
        for row in batch.to_pylist()
    ]
    every = sum(len(batch) for batch in tables_read(file, table))
    assert len(want) < every or table in ("group_events", "problems")
    found = of_frame(read(spark, [file], table, columns=["file", "packet"], where=where))
    assert counted(found) == counted(want)
    options = {"path": file, "table": table, "where": where}
    source = of_frame(
        spark.read.format("kafkapcap").options(**options).load().select("file", "packet")
    )
    assert counted(source) == counted(want)


def test_invalid_filters(spark: SparkSession) -> None:
    file = str(FIXTURES / "captures" / "ck-848.pcap")
    for table, where, message in [
        ("exchanges", "api == Fech", "unknown API 'Fech'; did you mean Fetch?"),
        ("exchanges", "time < +5s", "must not be relative"),
        ("records", "latency > 1s", "table records has no latency; tables that have it: exchanges"),
    ]:
        with pytest.raises(BadOption) as caught:
            read(spark, [file], table, where=where)
        assert message in str(caught.value)


def test_redaction(spark: SparkSession) -> None:
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    plain = rows_of([file], "records")
    hidden = of_frame(read(spark, [file], "records", redact=True))
    assert len(plain) == len(hidden) > 0
    values = {row["value"] for row in plain if row["value"]}
    assert not any(row["value"] in values for row in hidden)
    assert all(row["value"] is None or row["value"].startswith(b"sha256:") for row in hidden)
    nothing = of_frame(read(spark, [file], "records", includeRecords=False))
    assert {row["value"] for row in nothing} == {None}


def test_excluded_bodies(spark: SparkSession) -> None:
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    want = [{**row, "body": None, "raw": None} for row in rows_of([file], "messages")]
    assert counted(of_frame(read(spark, [file], "messages", includeBodies=False))) == counted(want)


def test_times(spark: SparkSession) -> None:
    file = str(FIXTURES / "captures" / "kjs-all.pcap")
    every = rows_of([file], "messages")
    second = sorted(row["time_ns"] for row in every)[len(every) // 2] // 1_000_000_000
    want = [row for row in every if row["time_ns"] >= second * 1_000_000_000]
    assert 0 < len(want) < len(every)
    assert counted(of_frame(read(spark, [file], "messages", startTs=second))) == counted(want)


def test_reassembly_limits(spark: SparkSession, tmp_path: Path) -> None:
    lost = str(FIXTURES / "captures" / "kcat-kf--loss.pcap")
    silent = tmp_path / "silent.pcap"
    sent = [*hello(), Sent(0, 0, PAYLOAD), Sent(0, 1 << 22, PAYLOAD, after_ms=2000)]
    silent.write_bytes(pcap(packets(sent), magic=0xA1B23C4D))
    for file, table, option, limit in (
        (lost, "problems", {"maxFlowBytes": "1"}, {"max_held_bytes": 1}),
        (str(silent), "connections", {"idleTimeout": 1}, {"silence_ns": 1_000_000_000}),
    ):
        want = rows_of([file], table, reassembly=replace(DEFAULT_REASSEMBLY, **limit))
        assert counted(want) != counted(rows_of([file], table))
        assert counted(of_frame(read(spark, [file], table, **option))) == counted(want)


def test_known_brokers_and_ports(spark: SparkSession, tmp_path: Path) -> None:
    sent = [*hello(), Sent(0, 0, PAYLOAD), *goodbye(len(PAYLOAD), 0)]
    file = tmp_path / "one.pcap"
    file.write_bytes(pcap(packets(sent), magic=0xA1B23C4D))
    for options in ({}, {"ports": [9092]}, {"brokers": ["10.0.0.2:9092"]}):
        want = rows_of([str(file)], "problems", **options)
        assert counted(of_frame(read(spark, [str(file)], "problems", **options))) == counted(want)


def test_an_empty_ethernet_frame(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "empty.pcap"
    file.write_bytes(pcap([Packet(ethernet(b""), 1)]))
    for table in TABLES:
        found = of_frame(read(spark, [str(file)], table))
        assert counted(found) == counted(rows_of([str(file)], table))
        assert len(found) == (table == "problems")


def test_header_keys_that_are_not_utf8(spark: SparkSession) -> None:
    capture = str(FIXTURES / "field" / "06-header-key.pcap")
    rows = of_frame(read(spark, [capture], "records"))
    assert counted(rows) == counted(rows_of([capture], "records"))
    frame = read(spark, [capture], "records").selectExpr("explode(headers) as h").select("h.*")
    (header,) = frame.collect()
    assert (header.key, bytes(header.key_bytes)) == ("Stra\ufffde", b"Stra\xdfe")
