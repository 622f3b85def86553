"""The reports of captures as objects: summary and groups, shown as HTML in Jupyter."""

from __future__ import annotations

from typing import Any, Final

from ..capture.multifile import Traffic
from ..reports.apis import Apis
from ..reports.clients import Clients
from ..reports.groups.group import GroupHistory
from ..reports.groups.histories import Groups
from ..reports.groups.silences import Silences
from ..reports.problems import Problems
from ..reports.reading import Reading
from ..reports.topics import Topics
from ..reports.watermarks import Watermarks
from .html import MAX_ROWS, table_html, tree_html


class Progress:
    """Progress of reading, which nobody looks at."""

    packets = 0
    bytes = 0
    again = False


class Group:
    """A consumer group: its members, rebalances, commits and lag.

    json: what `kafkawire groups --format json` shows of it.
    """

    def __init__(self, history: GroupHistory) -> None:
        self.group_id = history.group_id
        self.json = history.json_with_timeline()

    def __repr__(self) -> str:
        members, rebalances = len(self.json["members"]), len(self.json["rebalances"])
        return f"<Group {self.group_id!r}: {members} members, {rebalances} rebalances>"

    def _repr_html_(self) -> str:
        return tree_html(f"group {self.group_id}", self.json)


LISTS: Final[dict[str, tuple[str, ...]]] = {
    "apis": ("api_name", "requests", "responses", "errors", "p50_ns", "p99_ns", "max_ns"),
    "topics": ("topic", "partitions", "records", "bytes"),
    "clients": ("client_id", "software_name", "software_version", "address", "requests", "errors"),
    "problems": ("kind", "count", "bytes", "first"),
}
"""Lists of a summary -> the columns shown in HTML."""


class Summary:
    """What captures contain. Entries of the lists are as in `kafkawire summary --format json`."""

    def __init__(self, traffic: Traffic) -> None:
        reading = Reading(traffic, Progress())
        apis, clients, watermarks = Apis(), Clients(), Watermarks(reading)
        silences = Silences()
        groups, problems = Groups(reading, watermarks, silences), Problems(reading)
        topics = Topics(reading.context.names, problems.corrupt_records)
        reading.read(clients, watermarks, silences, groups, apis, problems, topics)
        self.apis: list[dict[str, Any]] = [one.json() for one in apis.all]
        self.topics: list[dict[str, Any]] = [one.json() for one in topics.all]
        self.clients: list[dict[str, Any]] = [one.json() for one in clients.all]
        self.problems: list[dict[str, Any]] = [one.json() for one in problems.all]
        self.groups = [Group(history) for history in groups.all]

    def __repr__(self) -> str:
        counts = {name: len(getattr(self, name)) for name in (*LISTS, "groups")}
        return f"<Summary: {', '.join(f'{n} {name}' for name, n in counts.items())}>"

    def _repr_html_(self) -> str:
        parts = []
        for title, names in LISTS.items():
            entries = getattr(self, title)
            if entries:
                rows = [[one.get(name) for name in names] for one in entries[: MAX_ROWS + 1]]
                parts.append(table_html(names, rows, title=title, total=len(entries)))
        parts += [group._repr_html_() for group in self.groups[:MAX_ROWS]]
        if len(self.groups) > MAX_ROWS:
            parts.append(f"<p>{len(self.groups) - MAX_ROWS:,} more groups</p>")
        return "".join(parts)
