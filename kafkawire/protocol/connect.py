"""Payloads of Kafka Connect workers in a rebalance (protocol type "connect").

Versions only append fields. From version 1 on, missing fields at the end have their defaults,
as in Connect.

    protocol     version   rebalancing
    default      0         eager: all stop, all start again
    compatible   1         incremental cooperative (KIP-415)
    sessioned    2         the same bytes, and signed REST requests among workers (KIP-507)

    metadata     int16 version | url, config offset
                 1+: nullable bytes, the assignment held now (with a version of its own)
    assignment   int16 version | error, leader, leader url, config offset, connectors with tasks
                 1+: what is revoked, delay
"""

from __future__ import annotations

from typing import ClassVar, Final

from ..errors import FieldNotInVersion, NullNotAllowed
from ..primitives import FieldRow, Reader, Structure, Writer
from .client_payload import ClientPayload

CONNECTOR_TASK: Final = -1
"""The task number of the connector itself."""


class ConnectorAssignment(Structure):
    """A connector and its tasks on a worker; task -1 is the connector itself."""

    __match_args__: ClassVar[tuple[str, ...]] = ("connector", "tasks")
    __fields__: ClassVar[tuple[FieldRow, ...]] = (
        FieldRow("connector", "connector", "string", 0, 2, -1),
        FieldRow("tasks", "tasks", "[]int32", 0, 2, -1),
    )

    def __init__(self, *, connector: str = "", tasks: list[int] | None = None) -> None:
        self.connector = connector
        self.tasks = [] if tasks is None else tasks


class ConnectWorkerMetadata(ClientPayload):
    """The metadata of a worker that joins.

    url: of its REST interface. config_offset: its position in the config topic. allocation: its
    current assignment, an encoded ConnectAssignment; None for none.
    """

    LAST = 2
    __match_args__: ClassVar[tuple[str, ...]] = ("url", "config_offset", "allocation")
    __fields__: ClassVar[tuple[FieldRow, ...]] = (
        FieldRow("url", "url", "string", 0, 2, -1),
        FieldRow("config_offset", "configOffset", "int64", 0, 2, -1),
        FieldRow("allocation", "allocation", "bytes", 1, 2, -1),
    )

    def __init__(
        self, *, url: str = "", config_offset: int = 0, allocation: bytes | None = None
    ) -> None:
        self.url = url
        self.config_offset = config_offset
        self.allocation = allocation
        self.deviations = None

    @classmethod
    def _read(cls, reader: Reader, version: int) -> ConnectWorkerMetadata:
        metadata = cls(url=reader.read_string(False), config_offset=reader.read_int64())
        if version >= 1 and _more(reader):
            metadata.allocation = reader.read_nullable_bytes(False)
        return metadata

    def _write(self, writer: Writer, version: int) -> None:
        writer.write_string(self.url, False)
        writer.write_int64(self.config_offset)
        if version >= 1:
            writer.write_nullable_bytes(self.allocation, False)
        elif self.allocation is not None:
            raise _absent("ConnectWorkerMetadata.allocation")


class ConnectAssignment(ClientPayload):
    """The leader's assignment for a worker.

    error: 0 for none, 1 if the workers have different positions in the config topic. assignment: to
    run (from version 1 on: to start); None only from version 1 on. revoked: to stop. delay:
    milliseconds until the next rebalance, 0 for none.
    """

    LAST = 2
    __match_args__: ClassVar[tuple[str, ...]] = (
        "error",
        "leader",
        "leader_url",
        "config_offset",
        "assignment",
        "revoked",
        "delay",
    )
    __fields__: ClassVar[tuple[FieldRow, ...]] = (
        FieldRow("error", "error", "int16", 0, 2, -1),
        FieldRow("leader", "leader", "string", 0, 2, -1),
        FieldRow("leader_url", "leaderUrl", "string", 0, 2, -1),
        FieldRow("config_offset", "configOffset", "int64", 0, 2, -1),
        FieldRow("assignment", "assignment", "[]ConnectorAssignment", 0, 2, -1),
        FieldRow("revoked", "revoked", "[]ConnectorAssignment", 1, 2, -1),
        FieldRow("delay", "delay", "int32", 1, 2, -1),
    )

    def __init__(
        self,
        *,
        error: int = 0,
        leader: str = "",
        leader_url: str = "",
        config_offset: int = 0,
        assignment: list[ConnectorAssignment] | None = None,
        revoked: list[ConnectorAssignment] | None = None,
        delay: int = 0,
    ) -> None:
        self.error = error
        self.leader = leader
        self.leader_url = leader_url
        self.config_offset = config_offset
        self.assignment = assignment
        self.revoked = revoked
        self.delay = delay
        self.deviations = None

    @classmethod
    def _read(cls, reader: Reader, version: int) -> ConnectAssignment:
        assignment = cls(
            error=reader.read_int16(),
            leader=reader.read_string(False),
            leader_url=reader.read_string(False),
            config_offset=reader.read_int64(),
        )
        if version == 0:
            assignment.assignment = _read_connectors(reader, reader.read_array_length(False))
            return assignment
        if _more(reader):
            assignment.assignment = _read_nullable_connectors(reader)
        if _more(reader):
            assignment.revoked = _read_nullable_connectors(reader)
        if _more(reader):
            assignment.delay = reader.read_int32()
        return assignment

    def _write(self, writer: Writer, version: int) -> None:
        writer.write_int16(self.error)
        writer.write_string(self.leader, False)
        writer.write_string(self.leader_url, False)
        writer.write_int64(self.config_offset)
        if version == 0:
            if self.assignment is None:
                raise NullNotAllowed("is None before version 1", "ConnectAssignment.assignment")
            if self.revoked is not None:
                raise _absent("ConnectAssignment.revoked")
            if self.delay != 0:
                raise _absent("ConnectAssignment.delay")
        _write_connectors(writer, self.assignment)
        if version >= 1:
            _write_connectors(writer, self.revoked)
            writer.write_int32(self.delay)


def _more(reader: Reader) -> bool:
    return reader.pos < reader.end


def _absent(path: str) -> FieldNotInVersion:
    return FieldNotInVersion("is set, and version 0 has no such field", path)


def _read_nullable_connectors(reader: Reader) -> list[ConnectorAssignment] | None:
    count = reader.read_nullable_array_length(False)
    return None if count < 0 else _read_connectors(reader, count)


def _read_connectors(reader: Reader, count: int) -> list[ConnectorAssignment]:
    return [
        ConnectorAssignment(
            connector=reader.read_string(False),
            tasks=reader.read_int32_items(reader.read_array_length(False)),
        )
        for _ in range(count)
    ]


def _write_connectors(writer: Writer, connectors: list[ConnectorAssignment] | None) -> None:
    if connectors is None:
        writer.write_length(-1, False)
        return
    writer.write_length(len(connectors), False)
    for each in connectors:
        writer.write_string(each.connector, False)
        writer.write_int32_array(each.tasks, False)
