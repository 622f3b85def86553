"""The `deliveries` table: what members of share groups acquired and acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.columns import INT32, INT64, TEXT, TIME, Column, Columns, micros

from ..groups.deliveries import COUNTED
from ..groups.histories import Groups
from ..groups.silences import Silences
from ..reading import Collector, Reading
from ..watermarks import Watermarks

MOST: Final = 2**63 - 1
"""The largest number of a column; offsets that nobody has written may add up to more."""

COLUMNS: Final[Columns] = (
    Column("time", TIME, "Of the first message that was counted; null if it has no time."),
    Column("until", TIME, "Of the last one."),
    Column("group_id", TEXT, "Group id."),
    Column("member_id", TEXT, "Member."),
    Column("client_id", TEXT, "Client id of the member."),
    Column("topic", TEXT, "Topic, or its id if the name is unknown."),
    Column("partition", INT32, "Partition."),
    Column("acquired", INT64, "Records that the member acquired, each time that it did."),
    Column("redelivered", INT64, "Those of them with a delivery count above 1."),
    Column("max_delivery_count", INT32, "The largest delivery count."),
    *(
        Column(type, INT64, f"Records that it acknowledged: {meaning}.")
        for type, meaning in zip(
            COUNTED,
            (
                "there is none at the offset",
                "processed",
                "to be delivered again",
                "not to be delivered again",
                "to be held for longer (KIP-1222)",
                "of an unknown type",
                "with an error of the broker in return",
            ),
            strict=True,
        )
    ),
)


class DeliveryTable:
    """The `deliveries` table of a capture."""

    def __init__(self, captures: Reading) -> None:
        watermarks, silences = Watermarks(captures), Silences()
        self._groups = Groups(captures, watermarks, silences)
        self.collectors: Sequence[Collector] = [watermarks, silences, self._groups]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Build the rows of the table, at the end of the capture."""
        for group in self._groups.all:
            for member in group.members.values():
                for (_, partition), (topic, one) in member.deliveries.partitions.items():
                    counts = one.json()
                    yield (
                        None if one.first_ns == NO_TIME else micros(one.first_ns),
                        None if one.last_ns == NO_TIME else micros(one.last_ns),
                        group.group_id,
                        member.member_id,
                        member.client_id,
                        topic.name or topic.id_text,
                        partition,
                        *(min(count, MOST) for count in counts.values()),
                    )
