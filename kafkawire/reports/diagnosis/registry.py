"""The rules, those of users too, and what users change about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Final, NamedTuple

from kafkawire.errors import KafkaWireError

from .rule import Rule, Scene
from .rules.broker_errors import BrokerErrors, CoordinatorTrouble, IsrTrouble, RequestTimeouts
from .rules.brokers import ControlledShutdowns, LeaderElections, SlowBroker
from .rules.client_errors import (
    ApiVersionsFallback,
    AuthenticationFailures,
    AuthorizationFailures,
    OffsetResets,
    StaleMetadata,
    UnknownTopics,
    UnsupportedVersions,
)
from .rules.clients import MetadataStorm, OldVersions, Throttling
from .rules.connections import ConnectionChurn, ConnectionResets
from .rules.consuming import CommitRate, GrowingLag, TinyFetches
from .rules.membership import PollTimeouts, RebalanceStorm
from .rules.membership_errors import (
    ExpelledMembers,
    InconsistentProtocols,
    StaticMembersFighting,
    ZombieCommits,
)
from .rules.network import CaptureLoss, Retransmissions, UndecodedConnections
from .rules.produced_records import HotPartitions, RecordClock
from .rules.producer_errors import (
    DuplicateSequences,
    FencedProducers,
    OversizeRecords,
    SequenceErrors,
)
from .rules.producing import AcksMixed, CompressionHabits, ProduceRetries, TinyBatches
from .rules.responses import OneWayCaptures, SlowResponses, UnansweredRequests
from .rules.transactions import AbortedTransactions, HangingTransactions

ENTRY_POINTS: Final = "kafkawire.diagnosis"
"""The group of entry points whose objects are subclasses of `Rule`."""

RULES: Final[tuple[type[Rule], ...]] = (
    # producers
    TinyBatches,
    AcksMixed,
    CompressionHabits,
    ProduceRetries,
    SequenceErrors,
    DuplicateSequences,
    OversizeRecords,
    FencedProducers,
    AbortedTransactions,
    HangingTransactions,
    HotPartitions,
    RecordClock,
    # consumers
    RebalanceStorm,
    PollTimeouts,
    ExpelledMembers,
    StaticMembersFighting,
    InconsistentProtocols,
    ZombieCommits,
    GrowingLag,
    CommitRate,
    TinyFetches,
    OffsetResets,
    # clients
    StaleMetadata,
    MetadataStorm,
    UnknownTopics,
    ConnectionChurn,
    AuthenticationFailures,
    AuthorizationFailures,
    Throttling,
    UnansweredRequests,
    SlowResponses,
    OldVersions,
    UnsupportedVersions,
    ApiVersionsFallback,
    # brokers
    IsrTrouble,
    BrokerErrors,
    RequestTimeouts,
    CoordinatorTrouble,
    SlowBroker,
    LeaderElections,
    ControlledShutdowns,
    # network and capture
    Retransmissions,
    ConnectionResets,
    CaptureLoss,
    OneWayCaptures,
    UndecodedConnections,
)
"""The rules of kafkawire."""


class RuleError(KafkaWireError):
    """A rule that cannot be used, or a rule or threshold that does not exist."""

    def __init__(self, reason: str, name: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(reason, name, names)
        self.reason = reason
        self.name = name
        self.names = names

    def __str__(self) -> str:
        return f"{self.reason} {self.name!r}"


def installed_rules() -> dict[str, type[Rule]]:
    """Return all rules by name, with those of installed packages. Raises RuleError."""
    rules = {rule.name: rule for rule in RULES}
    for entry_point in entry_points(group=ENTRY_POINTS):
        rule = entry_point.load()
        if not (isinstance(rule, type) and issubclass(rule, Rule)):
            raise RuleError("not a subclass of Rule:", entry_point.value)
        if rule.name in rules:
            raise RuleError("two rules are named", rule.name)
        rules[rule.name] = rule
    return rules


class Settings(NamedTuple):
    """What users change. disabled: names of rules. limits: by rule and threshold."""

    disabled: frozenset[str] = frozenset()
    limits: Mapping[tuple[str, str], float] = {}


UNCHANGED: Final = Settings()


def create(
    rules: Mapping[str, type[Rule]], scene: Scene, settings: Settings = UNCHANGED
) -> list[Rule]:
    """Create the rules that are not disabled. Raises RuleError."""
    _check(rules, settings)
    return [
        rule(
            scene,
            {
                threshold.name: settings.limits.get((name, threshold.name), threshold.default)
                for threshold in rule.thresholds
            },
        )
        for name, rule in rules.items()
        if name not in settings.disabled
    ]


def _check(rules: Mapping[str, type[Rule]], settings: Settings) -> None:
    """Check that the settings name rules and thresholds that exist."""
    _check_names(settings.disabled, rules)
    _check_names([name for name, _ in settings.limits], rules)
    for name, threshold in settings.limits:
        names = tuple(one.name for one in rules[name].thresholds)
        if threshold not in names:
            raise RuleError(f"the rule {name} has no threshold", threshold, names)


def _check_names(names: Iterable[str], rules: Mapping[str, type[Rule]]) -> None:
    for name in names:
        if name not in rules:
            raise RuleError("unknown rule", name, tuple(rules))
