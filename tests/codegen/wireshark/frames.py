"""Captures of golden messages: a request and its response for each vector, in one connection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkawire.messages import REGISTRY
from kafkawire.messages.request_header import RequestHeader
from kafkawire.messages.response_header import ResponseHeader
from kafkawire.primitives import Message
from kafkawire.protocol.header import request_header_version, response_header_version
from tests import golden
from tests.capture.written import BROKER, CLIENT, Scenario

LARGEST: Final = 60_000
"""Bytes of a segment, at most."""

Row = dict[str, Any]


class Sent(NamedTuple):
    """A golden message that was sent."""

    direction: str
    correlation_id: int
    row: Row

    @property
    def version(self) -> int:
        version: int = self.row["version"]
        return version

    def message(self) -> Message:
        """Decode it."""
        data = bytes.fromhex(self.row["hex"])
        found: Message = REGISTRY.load(self.row["message"]).decode(data, self.version)
        return found


def key_of(api: str) -> int:
    """Return the key of an API."""
    key = REGISTRY.get(f"{api}Request").api_key
    assert key is not None
    return key


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def request(key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    number = request_header_version(key, version)
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="golden" if number else "",
    )
    return frame(header.encode(number) + body)


def response(key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    header = ResponseHeader(correlation_id=correlation_id)
    return frame(header.encode(response_header_version(key, version)) + body)


def send(scenario: Scenario, side: int, data: bytes, connection: int = 0) -> None:
    """Send bytes in as many segments as they need."""
    for at in range(0, len(data), LARGEST):
        scenario.send(side, data[at : at + LARGEST], connection)


def pairs() -> dict[tuple[int, int], dict[str, list[Row]]]:
    """Group the golden requests and responses by API key and version."""
    found: dict[tuple[int, int], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in golden.rows("messages"):
        if row["type"] in ("request", "response"):
            found[row["api_key"], row["version"]][row["type"]].append(row)
    return dict(found)


def golden_traffic(path: Path, most: int | None = None) -> list[Sent]:
    """Write a capture of golden messages: `golden_scenario`."""
    scenario, sent = golden_scenario(most)
    scenario.save(path)
    return sent


def golden_scenario(most: int | None = None) -> tuple[Scenario, list[Sent]]:
    """Send golden messages, at most `most` exchanges of each API and version.

    Of requests and responses there is the same number: the last of the fewer is repeated. Where not
    all are sent, they are the largest.
    """
    scenario, sent = Scenario(), list[Sent]()
    for (key, version), sides in sorted(pairs().items()):
        ordered = {side: _largest(rows, most) for side, rows in sides.items()}
        for index in range(max(map(len, ordered.values()))):
            number = len(sent)
            for side, write, type in (
                (CLIENT, request, "request"),
                (BROKER, response, "response"),
            ):
                row = ordered[type][min(index, len(ordered[type]) - 1)]
                body = bytes.fromhex(row["hex"])
                send(scenario, side, write(key, version, number, body))
                sent.append(Sent(type, number, row))
    return scenario, sent


def _largest(rows: Iterable[Row], most: int | None) -> list[Row]:
    """The rows in order, or the largest up to 4 KiB."""
    if most is None:
        return list(rows)
    return sorted(rows, key=lambda row: (len(row["hex"]) > 8192, -len(row["hex"])))[:most]
