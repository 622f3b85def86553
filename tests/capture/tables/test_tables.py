"""Compares tables with reference decodings of the same recordings, and with each other."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture import tables
from tests.capture import truth

CAPTURES = truth.captures()
IDS = [path.name.split(".truth")[0] for path in CAPTURES]
WITH_RECORDS = [path for path in CAPTURES if truth.records_of(path).exists()]

Rows = list[dict[str, Any]]


@lru_cache(maxsize=8)
def table(path: Path, name: str) -> Rows:
    """All rows of a table."""
    return [row for batch in tables.read(path, name) for row in batch.to_pylist()]


def of(path: Path, name: str) -> Rows:
    return table(truth.capture_of(path), name)


@pytest.mark.parametrize("path", CAPTURES, ids=IDS)
def test_messages_match_the_truth(path: Path) -> None:
    ours = [
        (
            row["packet"],
            row["connection"],
            truth.SIDES[row["direction"]],
            row["api_key"],
            row["api_version"],
            row["correlation_id"],
            row["length"],
        )
        for row in of(path, "messages")
    ]
    keys = ("frame", "stream", "dir", "api_key", "api_version", "correlation_id", "len")
    assert ours == [tuple(row[key] for key in keys) for row in truth.lines(path)]


def true_exchanges(path: Path) -> Counter[tuple[Any, ...]]:
    """Pair the reference rows: a response belongs to the oldest in-flight request of its id."""
    waiting: dict[tuple[int, int], list[dict[str, Any]]] = {}
    found: Counter[tuple[Any, ...]] = Counter()
    for row in truth.lines(path):
        open_here = waiting.setdefault((row["stream"], row["correlation_id"]), [])
        if row["dir"] == "req":
            open_here.append(row)
        else:
            request = open_here.pop(0)
            found[row["stream"], request["frame"], row["frame"], row["api_key"]] += 1
    for (stream, _), rows in waiting.items():
        found.update((stream, row["frame"], None, row["api_key"]) for row in rows)
    return found


@pytest.mark.parametrize("path", CAPTURES, ids=IDS)
def test_exchanges_match_the_truth(path: Path) -> None:
    ours = Counter(
        (row["connection"], row["packet"], row["response_packet"], row["api_key"])
        for row in of(path, "exchanges")
    )
    assert ours == true_exchanges(path)


def test_the_large_captures_have_only_digests_of_their_records() -> None:
    assert len(WITH_RECORDS) >= 10


def base64_of(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


@pytest.mark.parametrize("path", WITH_RECORDS, ids=lambda path: path.name.split(".truth")[0])
def test_records_match_the_truth(path: Path) -> None:
    found = {
        key: list(rows)
        for key, rows in groupby(
            of(path, "records"),
            lambda row: (
                row["packet"],
                row["connection"],
                row["correlation_id"],
                row["topic_id"] or row["topic"],
                row["partition"],
            ),
        )
    }
    wanted = [row for row in truth.lines(truth.records_of(path)) if row["n"]]
    messages = truth.lines(path)
    seen = 0
    for row in wanted:
        topic = row["topic"]
        if isinstance(topic, list):  # an id, as 16 numbers
            topic = base64.urlsafe_b64encode(bytes(topic))[:22].decode()
        message = messages[row["row"]]
        assert (message["frame"], message["stream"]) == (row["frame"], row["stream"])
        ours = found[
            row["frame"], row["stream"], message["correlation_id"], topic, row["partition"]
        ]
        assert_same_records(ours, row)
        seen += len(ours)
    assert seen == sum(len(rows) for rows in found.values())


def assert_same_records(ours: Rows, wanted: dict[str, Any]) -> None:
    assert len(ours) == wanted["n"]
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    assert {row["codec"] for row in ours} <= {codecs[int(code)] for code in wanted["codecs"]}
    if "sha1" in wanted:
        lines = [
            f"{row['offset']}|{base64_of(row['key'])}|{base64_of(row['value'])}" for row in ours
        ]
        assert hashlib.sha1("\n".join(lines).encode()).hexdigest() == wanted["sha1"]
    expected_records = wanted.get("records") or [row for row in [wanted.get("first")] if row]
    for mine, theirs in zip(ours, expected_records, strict=False):
        assert mine["offset"] == theirs["o"]
        assert mine["timestamp_ms"] == (-1 if theirs["ts"] is None else theirs["ts"])
        assert (base64_of(mine["key"]), base64_of(mine["value"])) == (theirs["k"], theirs["v"])
        headers = [[header["key"], base64_of(header["value"])] for header in mine["headers"]]
        assert headers == theirs.get("h", [])
        assert mine["control"] == bool(theirs.get("control", False))


@pytest.mark.parametrize("path", CAPTURES, ids=IDS)
def test_tables_agree_with_each_other(path: Path) -> None:
    messages, exchanges = of(path, "messages"), of(path, "exchanges")
    connections, partitions = of(path, "connections"), of(path, "partitions")
    sides = Counter(row["direction"] for row in messages)
    assert sum(row["requests"] for row in connections) == sides["request"]
    assert sum(row["responses"] for row in connections) == sides["response"]
    assert sum(row["request_status"] is not None for row in exchanges) == sides["request"]
    assert sum(row["response_status"] is not None for row in exchanges) == sides["response"]
    assert sum(row["request_bytes"] or 0 for row in exchanges) == sum(
        row["request_bytes"] - 4 * row["requests"] for row in connections
    )
    used = Counter(
        (row["api_key"], row["api_version"]) for row in messages if row["direction"] == "request"
    )
    said: Counter[tuple[int, int]] = Counter()
    for row in connections:
        for version in row["versions"]:
            said[version["api_key"], version["api_version"]] += version["requests"]
    assert said == used
    records = of(path, "records")
    assert sum(row["records"] or 0 for row in partitions) == len(records)
    assert {row["packet"] for row in of(path, "problems")} >= {
        row["packet"] for row in messages if row["status"] not in ("ok", "sasl_token")
    }


@pytest.mark.parametrize("path", CAPTURES, ids=IDS)
def test_latency_is_between_the_two_packets(path: Path) -> None:
    for row in of(path, "exchanges"):
        if row["request_status"] and row["response_status"]:
            assert row["latency_ns"] == row["response_time_ns"] - row["time_ns"]
            assert row["latency_ns"] >= 0
        else:
            assert row["latency_ns"] is None


@pytest.mark.parametrize("path", CAPTURES, ids=IDS)
def test_every_topic_id_is_resolved_if_the_capture_has_its_name(path: Path) -> None:
    for row in of(path, "partitions"):
        assert row["topic"] is not None or row["topic_id"] is not None
