"""Reads captures with a filter.

Without a filter nothing is added to reading, nor imported; names of topics are looked up only
for a filter that compares them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.packages import OURS
from ..exchanges.exchanges import Ended
from ..files.source import Watch
from ..frames.decoding import LocatedItem, located
from ..multifile import Source, Traffic
from ..rows import Located
from ..tcp.limits import DEFAULT_REASSEMBLY, ReassemblyLimits
from ..tls.keylog import KeySource

if TYPE_CHECKING:
    from ...registry import Registry
    from ..filters import Filter
    from ..filters.unmatched import Unmatched
    from .messages import Names


def decode_capture(  # noqa: PLR0913 - options of a reader, by name
    source: Source,
    *,
    ports: Collection[int] = (),
    limits: Limits = DEFAULT_LIMITS,
    reassembly: ReassemblyLimits = DEFAULT_REASSEMBLY,
    brokers: Collection[str] = (),
    watch: Watch | None = None,
    keylog: KeySource = None,
    where: str | Filter | None = None,
    registry: Registry | None = None,
    tunnels: Sequence[str] = (),
) -> Iterator[Located]:
    """Decode a capture file, or a stream that is still being written.

    Rows are yielded as soon as they are complete. ports, brokers: as in `Engine`. watch: called
    with the progress. keylog: a TLS key log in NSS format (`SSLKEYLOGFILE`), or the path of one;
    a pcapng file may have its own. where: a filter (`kafkawire.capture.filters`); only rows that
    match it are yielded, a request once its response decides. registry: the package of the
    messages, if they are not Kafka's. tunnels: tunnels on UDP ports other than their own,
    `vxlan:14789`. Raises BadMagic or TruncatedCapture if the source is not a
    capture; KeyLogError and OSError for the key log; FilterError; ValueError as Engine does.
    """
    package = OURS if registry is None else registry.name
    if isinstance(where, str):
        from ..filters import parse

        where = parse(where, package)
    traffic = Traffic(
        [source],
        ports,
        limits,
        brokers=brokers,
        watch=watch,
        reassembly=reassembly,
        keylog=keylog,
        package=package,
        tunnels=tunnels,
    )
    return _decoded(traffic, where, limits)


def _decoded(traffic: Traffic, where: Filter | None, limits: Limits) -> Iterator[Located]:
    for batch in item_batches(traffic, where):
        for item in batch:
            yield located(item, limits)


def item_batches(
    traffic: Traffic, where: Filter | None, unmatched: Unmatched | None = None
) -> Iterator[list[LocatedItem]]:
    """Read a capture in batches of items that match a filter, if there is one.

    unmatched: gets the values that are compared until an item matches.
    """
    return traffic.item_batches() if where is None else _selected(traffic, where, unmatched)


def _selected(
    traffic: Traffic, where: Filter, unmatched: Unmatched | None
) -> Iterator[list[LocatedItem]]:
    from .selecting import Selection

    names = topic_names(traffic, where)
    selection = Selection[LocatedItem](where, traffic, names, unmatched=unmatched)
    for batch in traffic.batches():
        yield _items(selection.handle(batch))
    yield _items(selection.finish())


def _items(batch: list[LocatedItem | Ended]) -> list[LocatedItem]:
    return [one for one in batch if not isinstance(one, Ended)]


def topic_names(traffic: Traffic, where: Filter) -> Names | None:
    """Return what knows the names of topics, if a filter needs them."""
    if all(field.name != "topic" for field in where.fields):
        return None
    from ..tables.context import Context

    return Context(traffic)
