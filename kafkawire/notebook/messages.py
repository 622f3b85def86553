"""Messages of captures as objects, with their place and time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..capture.files.blocks import NO_TIME
from ..capture.jsonl.records_fields import JSON_NAMES
from ..capture.multifile import Traffic
from ..capture.redaction import redacted as without_records
from ..capture.rows import Located, Row, Status
from ..capture.tables.exchanges import since
from ..capture.tls.keylog import KeyLog
from ..display import time_text
from ..messages import REGISTRY
from ..primitives import Message
from ..protocol.json_text import shown_json
from .html import table_html, tree_html
from .rows import Rows, Table


class Options(NamedTuple):
    """How captures are read; see `open_capture`."""

    ports: tuple[int, ...]
    brokers: tuple[str, ...]
    secrets: bool
    redact: bool
    keylog: KeyLog
    tunnels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class CapturedMessage:
    """A message with its place and time.

    file, packet: as in tables. time_ns: nanoseconds since the epoch; None if unknown. direction:
    request or response. message: the decoded body, None if it was not decoded; `error` says why.
    latency_ns: of a response. It contains secrets; its HTML hides them, unless they are shown.
    """

    file: str
    packet: int
    time_ns: int | None
    connection: int
    client: str
    broker: str
    direction: str
    api_name: str | None
    api_version: int | None
    correlation_id: int | None
    client_id: str | None
    status: Status
    error: str
    latency_ns: int | None
    message: Message | None
    body_version: int | None
    options: Options

    @property
    def time(self) -> str | None:
        """The time as ISO 8601 in UTC."""
        return None if self.time_ns is None else time_text(self.time_ns)

    def json(self) -> Any:
        """Return the body as Kafka's JSON, as shown; None if it was not decoded."""
        if self.message is None or self.body_version is None:
            return None
        doubtful = self.status is not Status.OK
        obj = shown_json(self.message, self.body_version, self.options.secrets, doubtful)
        return without_records(obj, JSON_NAMES) if self.options.redact else obj

    def __repr__(self) -> str:
        return (
            f"<{self.api_name or 'unknown'} v{self.api_version} {self.direction}, packet "
            f"{self.packet} of {self.file!r}, {self.time}, {self.status.value}>"
        )

    def _repr_html_(self) -> str:
        title = (
            f"{self.api_name} v{self.api_version} {self.direction}, {self.time}, "
            f"packet {self.packet}, {self.client} - {self.broker}, {self.status.value}"
        )
        body = self.json()
        return tree_html(title, self.error or self.status.value if body is None else body)


class Messages(Table):
    """The table `messages`; called, the messages as objects."""

    def __init__(
        self,
        schema: pa.Schema,
        read: Callable[[str], Iterator[pa.RecordBatch]],
        sql: Callable[[str], Rows],
        traffic: Callable[[], Traffic],
        options: Options,
    ) -> None:
        super().__init__("messages", schema, read, sql)
        self._traffic = traffic
        self._options = options

    def __call__(
        self, api: str | Collection[str] = (), *, direction: str | None = None
    ) -> FoundMessages:
        """Find messages of some APIs (`Fetch`), or of all, and of a direction, or of both.

        Raises ValueError for an unknown API or direction.
        """
        apis = frozenset([api] if isinstance(api, str) else api)
        unknown = sorted(apis - API_NAMES)
        if unknown:
            raise ValueError(
                f"unknown API {unknown[0]!r}: expected one of {', '.join(sorted(API_NAMES))}"
            )
        if direction not in (None, "request", "response"):
            raise ValueError(f"unknown direction {direction!r}: expected request or response")
        return FoundMessages(self._traffic(), self._options, apis, direction)


API_NAMES: Final = frozenset(
    info.name.removesuffix("Request") for info in REGISTRY if info.type == "request"
)


class FoundMessages:
    """Messages as objects, in the order of the capture; read each time that they are iterated."""

    def __init__(
        self, traffic: Traffic, options: Options, apis: frozenset[str], direction: str | None
    ) -> None:
        self._traffic = traffic
        self._options = options
        self._apis = apis
        self._direction = direction

    def __iter__(self) -> Iterator[CapturedMessage]:
        traffic = self._traffic.again()
        for item in traffic:
            if not isinstance(item, Located) or not item.row.is_message:
                continue
            row = item.row
            if self._apis and row.api_name not in self._apis:
                continue
            if self._direction is None or row.direction == self._direction:
                yield _message(item, row, traffic, self._options)

    def _repr_html_(self) -> str:
        names = ("packet", "time", "api", "version", "direction", "client", "status")
        rows = (
            (one.packet, one.time, one.api_name, one.api_version, one.direction, one.client_id,
             one.status.value)
            for one in self
        )  # fmt: skip
        return table_html(names, rows, title="messages")


def _message(located: Located, row: Row, traffic: Traffic, options: Options) -> CapturedMessage:
    file, packet = traffic.place(row.packet)
    assert located.connection is not None
    return CapturedMessage(
        file=file,
        packet=packet,
        time_ns=None if row.time_ns == NO_TIME else row.time_ns,
        connection=located.connection,
        client=located.client or "",
        broker=located.broker or "",
        direction=row.direction,
        api_name=row.api_name,
        api_version=row.api_version,
        correlation_id=row.correlation_id,
        client_id=row.client_id,
        status=row.status,
        error=row.error,
        latency_ns=since(row.request_time_ns, row.time_ns),
        message=row.message,
        body_version=row.body_version,
        options=options,
    )
