"""A member of a group in a capture, and the JSON form of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.group_event import EventType, Tasks

from ...display import time_text
from ..client import Software
from .deliveries import MemberDeliveries
from .silences import ClientKey


class Member:
    """A member, or a client that only commits. joined_ns: None if it joined before the capture."""

    def __init__(self, member_id: str, client_id: str | None, address: str) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.address = address
        self.group_instance_id: str | None = None
        self.software: Software | None = None
        self.first_generation: int | None = None
        self.last_generation: int | None = None
        self.joined_ns: int | None = None
        self.left_ns: int | None = None
        self.left_by: EventType | None = None
        self.reason: str | None = None
        self.commits = 0
        self.partitions: list[tuple[Topic, list[int]]] | None = None
        self.tasks: list[Tasks] | None = None
        self.deliveries = MemberDeliveries()

    @property
    def client(self) -> ClientKey:
        """Its client."""
        return ClientKey(self.client_id, self.address)

    def in_generation(self, *generations: int | None) -> None:
        """Note generations, or epochs, of the member."""
        for generation in generations:
            if generation is not None and generation >= 0:
                if self.first_generation is None:
                    self.first_generation = generation
                self.last_generation = generation

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "member_id": self.member_id,
            "group_instance_id": self.group_instance_id,
            "client_id": self.client_id,
            "software_name": None if self.software is None else self.software.name,
            "software_version": None if self.software is None else self.software.version,
            "address": self.address,
            "joined": None if self.joined_ns is None else time_text(self.joined_ns),
            "first_generation": self.first_generation,
            "last_generation": self.last_generation,
            "left": None if self.left_ns is None else time_text(self.left_ns),
            "how": None if self.left_by is None else self.left_by.value,
            "reason": self.reason,
            "commits": self.commits,
            "partitions": None if self.partitions is None else assigned_json(self.partitions),
            "tasks": None if self.tasks is None else [each._asdict() for each in self.tasks],
            "deliveries": self.deliveries.total.json() if self.deliveries else None,
        }


def assigned_json(partitions: Iterable[tuple[Topic, list[int]]]) -> list[dict[str, Any]]:
    """Return the JSON form of an assignment."""
    return [
        {"topic": topic.name, "topic_id": topic.id_text, "partitions": numbers}
        for topic, numbers in partitions
    ]
