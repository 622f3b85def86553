"""Reads tables of a capture in one pass, one table or several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.packages import OURS
from ..files.source import Watch
from ..frames.decoding import LocatedItem
from ..multifile import OnProblem, Source, Traffic, no_report
from ..rows import Located
from ..tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from ..tls.keylog import KeySource
from .context import Context
from .multiple import read_together
from .tables import OF_ANY_PACKAGE, TABLES

if TYPE_CHECKING:
    from ...registry import Registry
    from ..filters import Filter

BATCH_ROWS: Final = 4096
"""Rows of a record batch at most, unless the caller says otherwise."""


def read(  # noqa: PLR0913 - options by name
    source: Source | Sequence[Source],
    table: str,
    *,
    ports: Collection[int] = (),
    batch_rows: int = BATCH_ROWS,
    secrets: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    keylog: KeySource = None,
    where: str | Filter | None = None,
    registry: Registry | None = None,
    tunnels: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Read a table of a capture; batches come as the capture is read.

    source: a path, a binary stream, or several paths that are read as one capture in the order of
    their first packets. ports, brokers: ports of brokers, and brokers as `address:port`, where they
    are known. secrets: whether credentials are shown. watch: reports progress. reassembly: limits
    of TCP reassembly. keylog: a TLS key log, or the path of one. where: a filter of the rows, by
    the columns of the table (`kafkawire.capture.filters`). registry: the package of the messages,
    if they are not Kafka's: there is the table `messages` of them. tunnels: tunnels on UDP ports
    other than their own, `vxlan:14789`.

    Topic ids are resolved to names from anywhere in the capture: files are read a second time if
    needed; in a stream, only names seen so far are known.

    Raises KeyError for an unknown table; FilterError for an invalid filter, or a field that the
    table lacks; ValueError for another table of a registry; BadMagic or TruncatedCapture for a file
    that is not a capture; KeyLogError for a file that is not a key log; OSError.
    """
    package = None if registry is None else registry.name
    chosen = checked(where, [table], package)
    traffic = _traffic(source, ports, limits, brokers, watch, reassembly, keylog, package, tunnels)
    batches = read_traffic(traffic, [table], batch_rows, secrets=secrets)
    matching = batches if chosen is None else _matching(batches, chosen, traffic)
    return (batch for _, batch in matching)


def read_tables(  # noqa: PLR0913 - options by name
    source: Source | Sequence[Source],
    names: Iterable[str],
    *,
    ports: Collection[int] = (),
    batch_rows: int = BATCH_ROWS,
    secrets: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    keylog: KeySource = None,
    where: str | Filter | None = None,
    bodies: bool = True,
    registry: Registry | None = None,
    tunnels: Sequence[str] = (),
    on_problem: OnProblem = no_report,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read several tables of a capture in one pass; each batch comes with its table's name.

    on_problem: called with the file and the problem of each truncated or corrupt file.
    bodies: False if `body` of `messages` is not needed: it is null if that is the only table, which
    takes half of the time. Other arguments and errors are those of `read`.
    """
    wanted = list(dict.fromkeys(names))
    package = None if registry is None else registry.name
    chosen = checked(where, wanted, package)
    traffic = _traffic(source, ports, limits, brokers, watch, reassembly, keylog, package, tunnels)
    traffic.on_problem = on_problem
    batches = read_traffic(traffic, wanted, batch_rows, secrets=secrets, bodies=bodies)
    return batches if chosen is None else _matching(batches, chosen, traffic)


def read_traffic(
    traffic: Traffic,
    names: Sequence[str],
    batch_rows: int = BATCH_ROWS,
    *,
    secrets: bool = False,
    bodies: bool = True,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read several tables of captures that are read as one; other arguments: `read_tables`."""
    is_bare = not bodies and names == ["messages"]
    context = (_BareContext if is_bare else Context)(traffic, secrets, traffic.limits)
    return read_together(context, names, batch_rows)


def checked(
    where: str | Filter | None, names: Iterable[str], package: str | None = None
) -> Filter | None:
    """Parse a filter for some tables. Raises KeyError, FilterError.

    package: the import name of the messages' package, None for Kafka's; ValueError for a table that
    messages of others do not have.
    """
    names = list(names)
    for name in names:
        if package not in (None, OURS) and name not in OF_ANY_PACKAGE:
            names_of_tables = ", ".join(OF_ANY_PACKAGE)
            raise ValueError(
                f"table {name!r} has only Kafka's messages; tables of others: {names_of_tables}"
            )
    if where is None:
        for name in names:
            TABLES[name]
        return None
    from ..filters import parse  # only for a filter
    from .filtering import check

    condition = parse(where, package or OURS) if isinstance(where, str) else where
    schemas = {name: [column.name for column in table.columns] for name, table in TABLES.items()}
    for name in names:
        TABLES[name]
        check(condition, name, schemas)
    return condition


def _matching(
    batches: Iterable[tuple[str, pa.RecordBatch]], where: Filter, traffic: Traffic
) -> Iterator[tuple[str, pa.RecordBatch]]:
    from .filtering import filtered

    for name, batch in batches:
        matching = filtered(batch, name, where, traffic.first_ns)
        if len(matching):
            yield name, matching


class _BareContext(Context):
    """Removes decoded bodies from rows, once their names are learned."""

    def decode(self, located_item: LocatedItem) -> Located:
        decoded = super().decode(located_item)
        return decoded._replace(row=decoded.row._replace(message=None, raw=b""))


def _traffic(  # noqa: PLR0913 - options of a reader
    source: Source | Sequence[Source],
    ports: Collection[int],
    limits: Limits,
    brokers: Collection[str],
    watch: Watch | None,
    reassembly: ReassemblyLimits,
    keylog: KeySource,
    package: str | None,
    tunnels: Sequence[str],
) -> Traffic:
    sources: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    return Traffic(
        sources,
        ports,
        limits,
        brokers=brokers,
        watch=watch,
        reassembly=reassembly,
        keylog=keylog,
        package=package,
        tunnels=tunnels,
    )
