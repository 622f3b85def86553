"""A rule about the assignors of the members of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.messages.api_key import ApiKey

from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import Rule, Scene, Subjects, Threshold
from .membership import MAX_CAUSES, SHOWN_CAUSES


class Assignors:
    """The members of a group by what they offer: cooperative assignors or only eager ones."""

    __slots__ = ("cooperative", "eager", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.eager: dict[str, None] = {}
        self.cooperative: dict[str, None] = {}


class EagerBesideCooperative(Rule):
    """Groups that stay eager because of some members."""

    name = "eager-beside-cooperative"
    description = (
        "Some members of a group have a cooperative assignor, others have only eager ones: all "
        "of them stop consuming in each rebalance, as long as one has no cooperative assignor."
    )
    apis = frozenset({ApiKey.JOIN_GROUP})
    thresholds = (
        Threshold("joins", 2, "requests", "of members with eager assignors only; one may be old"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._groups: Subjects[Assignors] = Subjects(Assignors)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the assignors of a member."""
        request = exchange.request
        message: Any = None if request is None else request.message
        if request is None or message is None or message.protocol_type != "consumer":
            return
        group = self._groups.of(Subject(group=message.group_id))
        names = [protocol.name for protocol in message.protocols]
        is_cooperative = any(name.startswith("cooperative") for name in names)
        members = group.cooperative if is_cooperative else group.eager
        if len(members) < MAX_CAUSES:
            members[request.client_id or exchange.client] = None
        if not is_cooperative:
            group.seen.add(request)

    def findings(self) -> Iterator[Finding]:
        """Return the groups with both kinds of members."""
        for subject, group in self._groups:
            if not group.cooperative or group.seen.count < self.limits["joins"]:
                continue
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"only eager assignors: {', '.join([*group.eager][:SHOWN_CAUSES])}; cooperative: "
                f"{', '.join([*group.cooperative][:SHOWN_CAUSES])}",
                group.seen,
                "An upgrade to cooperative rebalancing is not complete.",
                "Give all members cooperative-sticky beside the old assignor, then remove the old "
                "one, in two rolling restarts.",
                Confidence.HIGH,
                (Setting("partition.assignment.strategy"),),
                "KIP-429",
                ("api == JoinGroup",),
            )
