"""Builds the `connections` table: one row per TCP connection, made when the connection ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...messages.api_key import ApiKey
from ..exchanges.exchanges import Ended
from ..rows import Located, Row, Status
from .columns import (
    BOOL,
    INT16,
    INT64,
    TEXT,
    TIME,
    Column,
    Columns,
    known,
    list_of,
    micros,
    struct_of,
)
from .context import Context

VERSIONS: Final = list_of(
    struct_of(api_key=INT16, api_name=TEXT, api_version=INT16, requests=INT64)
)

MEASURED: Final[tuple[tuple[Column, Callable[[Ended], int | None]], ...]] = (
    (
        Column("retransmitted_bytes", INT64, "Bytes that were captured again, in no message."),
        lambda ended: ended.repeated_bytes,
    ),
    (
        Column(
            "client_rtt_ns",
            INT64,
            "Round-trip time between the capturing host and the client, from TCP's handshake; null "
            "if that was not captured.",
        ),
        lambda ended: ended.client_tcp.rtt_ns,
    ),
    (
        Column(
            "broker_rtt_ns",
            INT64,
            "The same of the broker: the part of each latency that is the network.",
        ),
        lambda ended: ended.broker_tcp.rtt_ns,
    ),
    (
        Column("client_mss", INT64, "Maximum segment size of the client; null if unknown."),
        lambda ended: ended.client_tcp.mss,
    ),
    (
        Column("broker_mss", INT64, "Maximum segment size of the broker; null if unknown."),
        lambda ended: ended.broker_tcp.mss,
    ),
    (
        Column("client_zero_windows", INT64, "How often the client's receive window closed."),
        lambda ended: ended.client_tcp.zero_windows,
    ),
    (
        Column("broker_zero_windows", INT64, "How often the broker's receive window closed."),
        lambda ended: ended.broker_tcp.zero_windows,
    ),
    (
        Column("client_window_closed_ns", INT64, "How long the client's window was closed in all."),
        lambda ended: ended.client_tcp.closed_ns,
    ),
    (
        Column("broker_window_closed_ns", INT64, "How long the broker's window was closed in all."),
        lambda ended: ended.broker_tcp.closed_ns,
    ),
)
"""The columns that no message has, and what computes each of a closed connection."""

COLUMNS: Final[Columns] = (
    Column("connection", INT64, "Number of the connection, from 0 in order of appearance."),
    Column("client", TEXT, "Address and port of the client."),
    Column("broker", TEXT, "Address and port of the broker."),
    Column(
        "protocol",
        TEXT,
        "`kafka`, or the other protocol detected; `copy` if it only repeats another connection, "
        "which `problems` names; null if no data was captured.",
    ),
    Column("first_file", TEXT, "File of the first packet."),
    Column("first_packet", INT64, "Number of the first packet in its file, from 1."),
    Column("first_time", TIME, "When that packet was captured."),
    Column("first_time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("last_file", TEXT, "File of the last packet."),
    Column("last_packet", INT64, "Number of the last packet in its file, from 1."),
    Column("last_time", TIME, "When that packet was captured."),
    Column("last_time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("reset", BOOL, "Whether it was reset (RST)."),
    Column("client_ids", list_of(TEXT), "Distinct client ids of its requests."),
    Column("client_software_name", TEXT, "From ApiVersions v3+ (KIP-511)."),
    Column("client_software_version", TEXT, "From ApiVersions v3+ (KIP-511)."),
    Column("sasl_mechanism", TEXT, "The SASL mechanism requested last; null without SASL."),
    Column(
        "versions",
        VERSIONS,
        "APIs and versions of its requests, with the number of requests of each.",
    ),
    Column("requests", INT64, "Complete requests."),
    Column("responses", INT64, "Complete responses."),
    Column("request_bytes", INT64, "Bytes of complete requests, including the 4-byte sizes."),
    Column("response_bytes", INT64, "Bytes of complete responses, including the 4-byte sizes."),
    Column("gaps", INT64, "Gaps: runs of bytes that were sent but not captured."),
    Column("gap_bytes", INT64, "Bytes missing in gaps."),
    Column("other_bytes", INT64, "Captured bytes that are not part of a complete message."),
    Column("problems", INT64, "Complete messages whose status is not `ok`."),
    *(column for column, _ in MEASURED),
)

KAFKA: Final = "kafka"
COPY: Final = "copy"
NO_SOFTWARE: Final = (None, None)

SIZE: Final = 4
"""Bytes of the size in front of a message."""

OTHER: Final = frozenset(
    {
        Status.TRUNCATED,
        Status.UNPARSED,
        Status.DISCARDED,
        Status.TLS,
        Status.PROXY,
        Status.OTHER_PROTOCOL,
    }
)
"""Statuses of rows of captured bytes that are not a complete message."""


class ConnectionStats:
    """What is known of a connection from its rows so far."""

    def __init__(self) -> None:
        self.protocol: str | None = None
        self.client_ids: dict[str, None] = {}
        self.software: tuple[str | None, str | None] = NO_SOFTWARE
        self.sasl_mechanism: str | None = None
        self.versions: dict[tuple[int, str | None, int], int] = {}
        self.messages = {"request": 0, "response": 0}
        self.bytes = {"request": 0, "response": 0}
        self.gaps = self.gap_bytes = self.other_bytes = self.problems = 0

    def handle(self, row: Row) -> None:
        """Count the next row."""
        if row.is_message:
            self._message(row)
        elif row.status is Status.GAP:
            self.gaps += 1
            self.gap_bytes += row.length
        elif row.status is Status.COPY:
            self.protocol = self.protocol or COPY
        elif row.status in OTHER:
            self.other_bytes += _captured(row)
            if row.status is Status.OTHER_PROTOCOL and self.protocol is None:
                self.protocol = row.error

    def _message(self, row: Row) -> None:
        self.protocol = KAFKA
        self.messages[row.direction] += 1
        self.bytes[row.direction] += row.length + 4
        self.problems += row.status is not Status.OK
        if row.direction != "request":
            return
        if row.client_id is not None:
            self.client_ids[row.client_id] = None
        if row.api_key is not None and row.api_version is not None:
            used = row.api_key, row.api_name, row.api_version
            self.versions[used] = self.versions.get(used, 0) + 1
        learn = LEARNERS.get(row.api_key or 0)
        if learn is not None and row.message is not None:
            learn(self, row.message)

    def set_software(self, message: Any) -> None:
        """Note the software of an ApiVersions request."""
        if message.client_software_name:
            self.software = message.client_software_name, message.client_software_version

    def set_mechanism(self, message: Any) -> None:
        """Note the mechanism of a SaslHandshake request."""
        self.sasl_mechanism = message.mechanism

    def merge(self, later: ConnectionStats) -> None:
        """Add what was counted of the rows that follow."""
        if self.protocol is None or later.protocol == KAFKA:
            self.protocol = later.protocol
        self.client_ids |= later.client_ids
        if later.software != NO_SOFTWARE:
            self.software = later.software
        if later.sasl_mechanism is not None:
            self.sasl_mechanism = later.sasl_mechanism
        for used, count in later.versions.items():
            self.versions[used] = self.versions.get(used, 0) + count
        for side in ("request", "response"):
            self.messages[side] += later.messages[side]
            self.bytes[side] += later.bytes[side]
        self.gaps += later.gaps
        self.gap_bytes += later.gap_bytes
        self.other_bytes += later.other_bytes
        self.problems += later.problems

    def row(self, ended: Ended, context: Context) -> tuple[Any, ...]:
        """Build the row of the connection."""
        return (
            ended.connection,
            ended.client,
            ended.broker,
            self.protocol,
            *_when(ended.first_packet, ended.first_ns, context),
            *_when(ended.last_packet, ended.last_ns, context),
            ended.reset,
            list(self.client_ids),
            *self.software,
            self.sasl_mechanism,
            [
                {"api_key": key, "api_name": name, "api_version": version, "requests": count}
                for (key, name, version), count in sorted(
                    self.versions.items(), key=lambda item: (item[0][0], item[0][2])
                )
            ],
            self.messages["request"],
            self.messages["response"],
            self.bytes["request"],
            self.bytes["response"],
            self.gaps,
            self.gap_bytes,
            self.other_bytes,
            self.problems,
            *(value(ended) for _, value in MEASURED),
        )


def _captured(row: Row) -> int:
    """Count the captured bytes of a row; of a truncated frame, including its size field."""
    if row.status is not Status.TRUNCATED:
        return row.length
    return len(row.raw) + (SIZE if row.length > len(row.raw) else 0)


LEARNERS: Final[dict[int, Callable[[ConnectionStats, Any], None]]] = {
    ApiKey.API_VERSIONS: ConnectionStats.set_software,
    ApiKey.SASL_HANDSHAKE: ConnectionStats.set_mechanism,
}
"""API key -> what notes the connection's properties in its requests."""


def _when(packet: int, time_ns: int, context: Context) -> tuple[Any, ...]:
    return (*context.traffic.place(packet), micros(time_ns), known(time_ns))


class Connections:
    """Collects the rows of connections, as they come."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: dict[int, ConnectionStats] = {}

    def handle(self, item: Located | Ended) -> list[tuple[Any, ...]]:
        """Handle the next row; return the connection's own row when it has ended."""
        if not isinstance(item, Located):
            return [self._open.pop(item.connection, ConnectionStats()).row(item, self._context)]
        if item.connection is not None:
            self._open.setdefault(item.connection, ConnectionStats()).handle(item.row)
        return []

    def merge(self, connection: int, stats: ConnectionStats) -> None:
        """Add what was counted of some rows of a connection elsewhere."""
        counted = self._open.setdefault(connection, stats)
        if counted is not stats:
            counted.merge(stats)
