"""Computes the expected content of reports from independent decoders.

No code of kafkawire is used, only truth files, franz-go's bodies, kafka-python's records, and
the packet headers of the capture.
"""

from __future__ import annotations

import base64
import struct
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from tests.capture import truth

MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
}
CODECS = {"0": "none", "1": "gzip", "2": "snappy", "3": "lz4", "4": "zstd"}


class Pair(NamedTuple):
    """A response and its request, as rows of truth."""

    request: dict[str, Any]
    response: dict[str, Any]


@cache
def rows(path: Path) -> list[dict[str, Any]]:
    """Read the messages of a recording."""
    return truth.lines(path)


@cache
def bodies(path: Path) -> list[dict[str, Any]]:
    """Read franz-go's bodies, one row per message."""
    return truth.lines(truth.kmsg_of(path))


@cache
def times(capture: Path) -> list[int]:
    """Read the times of a pcap's packets, nanoseconds."""
    data = capture.read_bytes()
    order, unit = MAGICS[data[:4]]
    made, at = [], 24
    while at < len(data):
        seconds, fraction, size, _ = struct.unpack_from(order + "IIII", data, at)
        made.append(seconds * 10**9 + fraction * unit)
        at += 16 + size
    return made


def pairs(path: Path) -> Iterator[Pair]:
    """Pair responses with their requests: by connection, API and correlation id, in order."""
    in_flight: dict[object, deque[dict[str, Any]]] = defaultdict(deque)
    for row in rows(path):
        key = row["stream"], row["api_key"], row["correlation_id"]
        if row["dir"] == "req":
            in_flight[key].append(row)
        else:
            yield Pair(in_flight[key].popleft(), row)


def counts(path: Path, direction: str) -> Counter[str]:
    """Count the messages of each API."""
    return Counter(row["api_name"] for row in rows(path) if row["dir"] == direction)


def latencies(path: Path) -> dict[str, list[int]]:
    """List the latencies of each API, sorted."""
    at = times(truth.capture_of(path))
    made: dict[str, list[int]] = defaultdict(list)
    for request, response in pairs(path):
        took = at[response["frame"] - 1] - at[request["frame"] - 1]
        made[request["api_name"]].append(took)
    return {api: sorted(took) for api, took in made.items()}


def quantile(values: list[int], share: float) -> int:
    """Return a quantile of sorted values."""
    return values[max(1, ceil(share * len(values))) - 1]


def errors(path: Path) -> dict[str, Counter[int]]:
    """Count, by API, how many responses have each error code; APIs of which franz-go
    could not decode a response are left out.
    """
    made: dict[str, Counter[int]] = defaultdict(Counter)
    unread = set()
    for row, body in zip(rows(path), bodies(path), strict=True):
        if row["dir"] == "resp":
            if body.get("roundtrip"):
                made[row["api_name"]].update(set(_codes(body["body"])))
            else:
                unread.add(row["api_name"])
    return {api: codes for api, codes in made.items() if api not in unread}


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.endswith("ErrorCode") and inner:
                yield inner
            else:
                yield from _codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _codes(inner)


def software(path: Path) -> dict[int, tuple[str, str]]:
    """Return client software name and version per connection (KIP-511)."""
    made: dict[int, tuple[str, str]] = {}
    for row, body in zip(rows(path), bodies(path), strict=True):
        if row["dir"] == "req" and row["api_name"] == "ApiVersions" and "body" in body:
            name = body["body"]["ClientSoftwareName"]
            if name:
                made[row["stream"]] = name, body["body"]["ClientSoftwareVersion"]
    return made


def topic_names(path: Path) -> dict[str, str]:
    """Collect the names of topic ids that bodies state together."""
    made: dict[str, str] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            id, name = value.get("TopicID"), value.get("Topic") or value.get("Name")
            if isinstance(id, list) and any(id) and name:
                made[_id(id)] = name
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for body in bodies(path):
        walk(body.get("body"))
    return made


class Amount(NamedTuple):
    """Records in one direction of a topic."""

    bytes: int
    batches: int
    records: int


def amounts(path: Path) -> tuple[dict[tuple[str, str], Amount], Counter[str]]:
    """Add up kafka-python's reading of the records, by topic and direction; and count codecs."""
    made: dict[tuple[str, str], Amount] = defaultdict(lambda: Amount(0, 0, 0))
    codecs: Counter[str] = Counter()
    names = topic_names(path)
    for row in truth.lines(truth.records_of(path)):
        batches = sum(row["codecs"].values())
        topic = row["topic"] if isinstance(row["topic"], str) else _id(row["topic"])
        key = names.get(topic, topic), "produced" if row["dir"] == "req" else "fetched"
        before = made[key]
        made[key] = Amount(
            before.bytes + row["bytes"], before.batches + batches, before.records + row["n"]
        )
        codecs.update({CODECS[codec]: count for codec, count in row["codecs"].items()})
    return dict(made), codecs


def _id(id: list[int]) -> str:
    """Write a topic id as Kafka does."""
    return base64.urlsafe_b64encode(bytes(id)).decode().rstrip("=")
