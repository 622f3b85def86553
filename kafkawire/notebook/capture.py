"""Opens captures for Python and Jupyter: tables, SQL, messages, reports.

Law: files are read anew each time that something is asked of them, except for tables that queries
need, which are kept in a private temporary folder until the capture is closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..capture.files.blocks import NO_TIME
from ..capture.jsonl.records_fields import JSON_NAMES
from ..capture.multifile import Traffic
from ..capture.redaction import redacted as without_records
from ..capture.rows import Located, Row, Status
from ..capture.tables import TABLES, read_tables
from ..capture.tables.exchanges import since
from ..capture.tables.redaction import redacted
from ..display import time_text
from ..messages import REGISTRY
from ..primitives import Message
from ..protocol.json_text import shown_json
from ..sql import Database
from .html import MAX_ROWS, table_html, tree_html
from .rows import Rows, Table
from .summary import Group, Summary


class Options(NamedTuple):
    """How captures are read; see `open_capture`."""

    ports: tuple[int, ...]
    brokers: tuple[str, ...]
    secrets: bool
    redact: bool


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
        made = shown_json(self.message, self.body_version, self.options.secrets, doubtful)
        return without_records(made, JSON_NAMES) if self.options.redact else made

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

    def __init__(self, capture: Capture) -> None:
        super().__init__("messages", TABLES["messages"].schema, capture.read, capture.sql)
        self._capture = capture

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
        return FoundMessages(self._capture, apis, direction)


API_NAMES: Final = frozenset(
    info.name.removesuffix("Request") for info in REGISTRY if info.type == "request"
)


class FoundMessages:
    """Messages as objects, in the order of the capture; read each time that they are iterated."""

    def __init__(self, capture: Capture, apis: frozenset[str], direction: str | None) -> None:
        self._capture = capture
        self._apis = apis
        self._direction = direction

    def __iter__(self) -> Iterator[CapturedMessage]:
        traffic = self._capture.traffic()
        for found in traffic:
            if not isinstance(found, Located) or not found.row.is_message:
                continue
            row = found.row
            if self._apis and row.api_name not in self._apis:
                continue
            if self._direction is None or row.direction == self._direction:
                yield _message(found, row, traffic, self._capture.options)

    def _repr_html_(self) -> str:
        names = ("packet", "time", "api", "version", "direction", "client", "status")
        rows = (
            (one.packet, one.time, one.api_name, one.api_version, one.direction, one.client_id,
             one.status.value)
            for one in self
        )  # fmt: skip
        return table_html(names, rows, title="messages")


def _message(found: Located, row: Row, traffic: Traffic, options: Options) -> CapturedMessage:
    file, packet = traffic.place(row.packet)
    assert found.connection is not None
    return CapturedMessage(
        file=file,
        packet=packet,
        time_ns=None if row.time_ns == NO_TIME else row.time_ns,
        connection=found.connection,
        client=found.client or "",
        broker=found.broker or "",
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


class Capture:
    """One or more captures that are read as one; made by `open_capture`.

    files: in the order of their first packets.
    """

    def __init__(self, files: Sequence[Path], options: Options) -> None:
        self.options = options
        self._files = tuple(files)
        self._database: Database | None = None
        self.files = tuple(str(file) for file in self.traffic().sources)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the tables that queries made; the next query makes them again."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def __repr__(self) -> str:
        return f"<Capture of {len(self.files)} files: {', '.join(self.files[:3])}>"

    def _repr_html_(self) -> str:
        sizes = [(str(file), Path(file).stat().st_size) for file in self.files[: MAX_ROWS + 1]]
        return table_html(("file", "bytes"), sizes, total=len(self.files))

    # -- tables

    @property
    def exchanges(self) -> Table:
        """One row per exchange: a request with its response."""
        return self.table("exchanges")

    @property
    def messages(self) -> Messages:
        """One row per message; `messages(api="Fetch")` are the messages as objects."""
        return Messages(self)

    @property
    def records(self) -> Table:
        """One row per record that was produced or fetched."""
        return self.table("records")

    @property
    def partitions(self) -> Table:
        """One row per exchange and partition."""
        return self.table("partitions")

    @property
    def connections(self) -> Table:
        """One row per TCP connection."""
        return self.table("connections")

    @property
    def group_events(self) -> Table:
        """One row per event of a group or one of its members."""
        return self.table("group_events")

    @property
    def problems(self) -> Table:
        """One row per problem."""
        return self.table("problems")

    def table(self, name: str) -> Table:
        """Return a table by name; raises KeyError."""
        if name == "messages":
            return Messages(self)
        return Table(name, TABLES[name].schema, self.read, self.sql)

    def read(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read a table."""
        return (batch for _, batch in self._read_tables([name]))

    def sql(self, query: str) -> Rows:
        """Run SQL (DuckDB's) on the tables, by their names; tables are kept for later queries.

        Raises QueryError; MissingPackage without the extra `sql`.
        """
        if self._database is None:
            self._database = Database(self._read_tables)
        result = self._database.run(query)
        return Rows(pa.table({}) if result is None else result.read_all())

    def _read_tables(self, names: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        options = self.options
        for name, batch in read_tables(
            list(self._files),
            names,
            ports=options.ports,
            brokers=options.brokers,
            secrets=options.secrets,
        ):
            yield name, redacted(name, batch) if options.redact else batch

    # -- reports

    def summary(self) -> Summary:
        """Summarise the captures: requests, topics, clients, groups, problems."""
        return Summary(self.traffic())

    def groups(self) -> list[Group]:
        """List the consumer groups, by id."""
        return self.summary().groups

    def traffic(self) -> Traffic:
        """Return a reader of located rows."""
        return Traffic(list(self._files), self.options.ports, brokers=self.options.brokers)


def open_capture(
    *sources: str | Path,
    ports: Iterable[int] = (),
    brokers: Iterable[str] = (),
    secrets: bool = False,
    redact: bool = False,
) -> Capture:
    """Open captures, which are read as one.

    sources: paths, or patterns such as `trace*.pcap`. ports, brokers: ports of brokers, and brokers
    as `address:port`, where they are known. secrets: whether credentials are shown. redact: replace
    keys and values of records by sizes and hashes.

    Raises FileNotFoundError for a path or pattern without a file; BadMagic or TruncatedCapture for
    a file that is not a capture; OSError.
    """
    files: dict[Path, None] = {}
    for source in sources:
        path = Path(source)
        found = [path] if path.exists() else sorted(map(Path, glob(str(source))))
        if not found:
            raise FileNotFoundError(2, "No such file or directory", str(source))
        files |= dict.fromkeys(found)
    if not files:
        raise ValueError("no captures given")
    options = Options(tuple(ports), tuple(brokers), secrets, redact)
    capture = Capture(list(files), options)
    for file in capture.files:
        _check(file)
    return capture


def _check(file: str) -> None:
    """Raise the error of a file that is not a capture."""
    from ..capture.files.source import read_capture

    next(iter(read_capture(file)), None)
