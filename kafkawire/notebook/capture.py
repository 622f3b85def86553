"""Opens captures for Python and Jupyter: tables, SQL, messages, reports.

Files are read anew each time that they are used, except for tables that queries
need, which are kept in a private temporary folder until the capture is closed. Reading a table
warns of messages that the captures have only in part (`IncompleteCaptureWarning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from warnings import warn

import pyarrow as pa

from ..capture.files.listing import directory_of, matching
from ..capture.losses import lack
from ..capture.multifile import Traffic
from ..capture.tables import TABLES
from ..capture.tables.reading import read_traffic
from ..capture.tables.redaction import redacted
from ..capture.tls.keylog import KeySource, as_key_log
from ..errors import CaptureError, IncompleteCaptureWarning, counted
from ..reports.reading import Reading
from ..reports.tables import REPORT_TABLES, read_report_tables, report_schemas
from ..sql import Database, Names
from ..sql.topic_values import TopicTable
from ..values import ValueDecoder
from .findings import Findings
from .html import MAX_ROWS, table_html
from .messages import Messages, Options
from .rows import Rows, Table
from .summary import Group, Progress, Summary

SHOWN: Final = 3
"""Names of files in the text of a capture, at most."""


class Capture:
    """One or more captures that are read as one; made by `open_capture`.

    files: in the order of their first packets.
    """

    def __init__(self, files: Sequence[Path], options: Options) -> None:
        self.options = options
        self._files = tuple(files)
        self._database: Database | None = None
        self._values: dict[str, pa.Table] = {}  # of topics
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
        names = [*self.files[:SHOWN], *["..."] * (len(self.files) > SHOWN)]
        return f"<Capture of {counted(len(self.files), 'file')}: {', '.join(names)}>"

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
        schema = TABLES["messages"].schema
        return Messages(schema, self.read, self.sql, self.traffic, self.options)

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

    @property
    def findings(self) -> Table:
        """One row per finding: what is wrong, the most harmful first."""
        return self.table("findings")

    @property
    def absences(self) -> Table:
        """When members of groups were silent or out, and groups without members."""
        return self.table("absences")

    @property
    def deliveries(self) -> Table:
        """What members of share groups acquired and acknowledged, by partition."""
        return self.table("deliveries")

    @property
    def lag(self) -> Table:
        """One row per group, partition and bucket of time with commits."""
        return self.table("lag")

    @property
    def load(self) -> Table:
        """One row per client, broker, API and bucket of time."""
        return self.table("load")

    def table(self, name: str) -> Table:
        """Return a table by name; raises KeyError."""
        if name == "messages":
            return self.messages
        table = TABLES[name] if name in TABLES else REPORT_TABLES[name]
        return Table(name, table.schema, self.read, self.sql)

    def read(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read a table."""
        return (batch for _, batch in self._read_tables([name]))

    def sql(self, query: str) -> Rows:
        """Run SQL (DuckDB's) on the tables, by their names; tables are kept for later queries.

        Raises QueryError; MissingPackage without the extra `sql`.
        """
        if self._database is None:
            self._database = Database(self._read_tables, others=report_schemas())
            for topic, table in self._values.items():
                self._database.add(topic, table)
        result = self._database.run(query)
        return Rows(pa.table({}) if result is None else result.read_all())

    def values(self, topic: str, decoder: ValueDecoder) -> Rows:
        """Decode the values of a topic, as a table in memory, which queries know by the topic.

        Its column `value` has the type of the values, `value.amount` in SQL; `error` says why a
        value could not be decoded. Raises ValueError for a capture opened with `redact`.
        """
        if self.options.redact:
            raise ValueError("values are redacted")
        with TemporaryDirectory(prefix="kafkawire-") as folder:
            decoded = TopicTable(self.read("records"), topic, decoder, Path(folder))
            table = decoded.reader().read_all()
        self._values[topic] = table
        if self._database is not None:
            self._database.add(topic, table)
        return Rows(table)

    def _read_tables(
        self, names: Sequence[str], columns: Names = None
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        options = self.options
        reports = [name for name in names if name in REPORT_TABLES]
        if reports:
            yield from read_report_tables(Reading(self.traffic(), Progress()), reports)
        names = [name for name in names if name not in REPORT_TABLES]
        if not names:
            return
        traffic, bodies = self.traffic(), columns is None or "body" in columns
        for name, batch in read_traffic(traffic, names, secrets=options.secrets, bodies=bodies):
            yield name, redacted(name, batch) if options.redact else batch
        if lack(names) and (text := traffic.losses.text("the tables lack")):
            warn(IncompleteCaptureWarning(f"{text}; see `diagnose()`"), stacklevel=2)

    # -- reports

    def summary(self) -> Summary:
        """Summarise the captures: requests, topics, clients, groups, problems."""
        return Summary(self.traffic())

    def diagnose(
        self, disable: Iterable[str] = (), thresholds: Mapping[str, float] | None = None
    ) -> Findings:
        """Find out what is wrong, and what to look at or change.

        disable: names of rules. thresholds: changed ones, `{"tiny-batches.bytes": 512}`. Raises
        RuleError for rules and thresholds that do not exist.
        """
        return Findings(self.traffic(), frozenset(disable), thresholds or {})

    def groups(self) -> list[Group]:
        """List the consumer groups, by id."""
        return self.summary().groups

    def traffic(self) -> Traffic:
        """Return a reader of located rows."""
        options = self.options
        return Traffic(
            list(self._files),
            options.ports,
            brokers=options.brokers,
            keylog=options.keylog,
            tunnels=options.tunnels,
        )


def open_capture(
    *sources: str | Path,
    ports: Iterable[int] = (),
    brokers: Iterable[str] = (),
    secrets: bool = False,
    redact: bool = False,
    keylog: KeySource = None,
    tunnels: Iterable[str] = (),
) -> Capture:
    """Open captures, which are read as one.

    sources: paths of files or directories, or patterns such as `trace*.pcap`, as in the command
    line. ports, brokers: ports of brokers, and brokers
    as `address:port`, where they are known. secrets: whether credentials are shown. redact: replace
    keys and values of records by sizes and hashes. keylog: a TLS key log, or the path of one.
    tunnels: tunnels on UDP ports other than their own, `vxlan:14789`.

    Raises FileNotFoundError for a path or pattern without a file; BadMagic or TruncatedCapture for
    a file that is not a capture, with a note that names it; KeyLogError for one that is not a key
    log; OSError.
    """
    files: dict[Path, None] = {}
    for source in sources:
        files |= dict.fromkeys(_files(Path(source)))
    if not files:
        raise ValueError("no captures given")
    endpoints = tuple(ports), tuple(brokers)
    options = Options(*endpoints, secrets, redact, as_key_log(keylog), tuple(tunnels))
    capture = Capture(list(files), options)
    for file in capture.files:
        _check(file)
    return capture


def _files(path: Path) -> list[Path]:
    """List the files that a path stands for. Raises FileNotFoundError."""
    paths = [path] if path.exists() else matching(path)
    files = [
        file
        for each in paths
        for file in (directory_of(each).captures if each.is_dir() else [each])
    ]
    if not files:
        reason = "No capture files in the directory" if paths else "No such file or directory"
        raise FileNotFoundError(2, reason, str(path))
    return files


def _check(file: str) -> None:
    """Raise the error of a file that is not a capture."""
    from ..capture.files.source import read_capture

    try:
        next(iter(read_capture(file)), None)
    except CaptureError as error:
        error.add_note(f"file: {file}")
        raise
