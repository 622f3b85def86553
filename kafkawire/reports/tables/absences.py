"""The `absences` table: when members of groups were silent or out, and groups without members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkawire.capture.tables.columns import INT64, TEXT, TIME, Column, Columns, micros

from ..groups.histories import Groups
from ..groups.silences import Silences
from ..reading import Collector, Reading
from ..watermarks import Watermarks

COLUMNS: Final[Columns] = (
    Column("time", TIME, "When it began."),
    Column("time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("until", TIME, "When it ended."),
    Column("until_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("duration_ns", INT64, "How long it lasted, in nanoseconds."),
    Column("group_id", TEXT, "Group id."),
    Column(
        "kind",
        TEXT,
        "`silent`: the member sent no heartbeat, no fetch and nothing else, for longer than 10 "
        "seconds or its session timeout, and waited for nothing; `out_of_group`: it had left or "
        "was removed, and joined again, while others were in the group; `no_members`: the last "
        "member had left or was removed, until another joined.",
    ),
    Column("member_id", TEXT, "Member; null for `no_members`."),
    Column("client_id", TEXT, "Client id of the member."),
)


class AbsenceTable:
    """The `absences` table of a capture."""

    def __init__(self, captures: Reading) -> None:
        watermarks, silences = Watermarks(captures), Silences()
        self._groups = Groups(captures, watermarks, silences)
        self.collectors: Sequence[Collector] = [watermarks, silences, self._groups]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Build the rows of the table, at the end of the capture."""
        for group in self._groups.all:
            for one in sorted(group.absences, key=lambda one: (one.time_ns, one.member_id or "")):
                yield (
                    micros(one.time_ns),
                    one.time_ns,
                    micros(one.until_ns),
                    one.until_ns,
                    one.duration_ns,
                    group.group_id,
                    one.kind.value,
                    one.member_id,
                    one.client_id,
                )
