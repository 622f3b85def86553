"""The rules, those of users too, and what users change about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from inspect import isabstract
from typing import Final, NamedTuple

from kafkawire.errors import KafkaWireError

from .error_rule import ErrorRule, RuleDefinition
from .rule import Rule, Scene
from .rules.assignors import EagerBesideCooperative
from .rules.brokers import ControlledShutdowns, LeaderElections
from .rules.captures import (
    CaptureLoss,
    CopiedConnections,
    DamagedCaptures,
    UndecodedConnections,
)
from .rules.clients import MetadataStorm, OldVersions, Throttling
from .rules.clocks import BrokerClocks, ClockOffset, RecordClock
from .rules.connections import ConnectionChurn, ConnectionResets, ManyConnections
from .rules.consuming import CommitRate, GrowingLag, TinyFetches
from .rules.errors.brokers import BROKER_ERRORS
from .rules.errors.clients import CLIENT_ERRORS
from .rules.errors.concurrent_transactions import ConcurrentTransactions
from .rules.errors.consumers import CONSUMER_ERRORS
from .rules.errors.membership import MEMBERSHIP_ERRORS
from .rules.errors.others import other_errors
from .rules.errors.producers import PRODUCER_ERRORS
from .rules.fetching import DownConversion, OtherRack
from .rules.handshakes import FailedConnections, TlsHandshakes
from .rules.latencies import SlowBroker, SlowPartition
from .rules.membership import LongRebalances, PollTimeouts, RebalanceStorm
from .rules.partitioning import HotKeys, HotPartitions, UnkeyedSkew
from .rules.producing import AcksMixed, CompressionHabits, ProduceRetries, TinyBatches
from .rules.rejections import RejectedRequests
from .rules.replicas import LogTruncation, StaleBrokers, UnderReplicated
from .rules.responses import OneWayCaptures, SlowResponses, UnansweredRequests
from .rules.tcp import NetworkLatency, Retransmissions, SmallSegments, ZeroWindows
from .rules.transactions import (
    AbortedTransactions,
    HangingTransactions,
    LongTransactions,
    StalledReadCommitted,
)
from .rules.waiting import BrokerStalls, HeadOfLineBlocking, ShortTimeouts

ENTRY_POINTS: Final = "kafkawire.diagnosis"
"""The group of entry points whose objects are subclasses of `Rule`, or an `ErrorRule`."""

NAMED: Final[tuple[RuleDefinition, ...]] = (
    # producers
    TinyBatches,
    AcksMixed,
    CompressionHabits,
    ProduceRetries,
    HeadOfLineBlocking,
    *PRODUCER_ERRORS,
    AbortedTransactions,
    HangingTransactions,
    LongTransactions,
    ConcurrentTransactions,
    HotPartitions,
    HotKeys,
    UnkeyedSkew,
    RecordClock,
    ClockOffset,
    # consumers
    RebalanceStorm,
    LongRebalances,
    PollTimeouts,
    EagerBesideCooperative,
    *MEMBERSHIP_ERRORS,
    *CONSUMER_ERRORS,
    GrowingLag,
    CommitRate,
    TinyFetches,
    StalledReadCommitted,
    OtherRack,
    # clients
    MetadataStorm,
    ConnectionChurn,
    ManyConnections,
    Throttling,
    *CLIENT_ERRORS,
    RejectedRequests,
    UnansweredRequests,
    ShortTimeouts,
    SlowResponses,
    OldVersions,
    # brokers
    *BROKER_ERRORS,
    SlowBroker,
    SlowPartition,
    BrokerStalls,
    BrokerClocks,
    DownConversion,
    UnderReplicated,
    LogTruncation,
    StaleBrokers,
    LeaderElections,
    ControlledShutdowns,
    # network and capture
    Retransmissions,
    ConnectionResets,
    FailedConnections,
    ZeroWindows,
    SmallSegments,
    NetworkLatency,
    TlsHandshakes,
    CaptureLoss,
    DamagedCaptures,
    OneWayCaptures,
    CopiedConnections,
    UndecodedConnections,
)
"""The rules about troubles that have names."""

RULES: Final = (*NAMED, other_errors(NAMED))
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


def installed_rules() -> dict[str, RuleDefinition]:
    """Return all rules by name, with those of installed packages. Raises RuleError."""
    rules = {rule.name: rule for rule in RULES}
    for entry_point in entry_points(group=ENTRY_POINTS):
        rule = entry_point.load()
        if not is_definition(rule):
            raise RuleError("not a subclass of Rule or an ErrorRule:", entry_point.value)
        if isabstract(rule):
            raise RuleError("no method `findings`:", entry_point.value)
        if rule.name in rules:
            raise RuleError("two rules are named", rule.name)
        rules[rule.name] = rule
    return rules


def is_definition(rule: object) -> bool:
    """Whether an object is a rule: a subclass of `Rule`, or an `ErrorRule`."""
    return isinstance(rule, ErrorRule) or (isinstance(rule, type) and issubclass(rule, Rule))


class Settings(NamedTuple):
    """What users change. disabled: names of rules. limits: by rule and threshold."""

    disabled: frozenset[str] = frozenset()
    limits: Mapping[tuple[str, str], float] = {}

    @classmethod
    def of(cls, disable: Iterable[str], thresholds: Mapping[str, float]) -> Settings:
        """Make settings. thresholds: by `rule.threshold`."""
        parts = {name.partition("."): value for name, value in thresholds.items()}
        return cls(
            frozenset(disable), {(rule, one): value for (rule, _, one), value in parts.items()}
        )


UNCHANGED: Final = Settings()


def create(
    rules: Mapping[str, RuleDefinition], scene: Scene, settings: Settings = UNCHANGED
) -> list[Rule]:
    """Create the rules that are not disabled. Raises RuleError."""
    check(rules, settings)
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


def check(rules: Mapping[str, RuleDefinition], settings: Settings) -> None:
    """Check that the settings name rules and thresholds that exist. Raises RuleError."""
    _check_names(settings.disabled, rules)
    _check_names([name for name, _ in settings.limits], rules)
    for name, threshold in settings.limits:
        names = tuple(one.name for one in rules[name].thresholds)
        if threshold not in names:
            raise RuleError(f"the rule {name} has no threshold", threshold, names)


def _check_names(names: Iterable[str], rules: Mapping[str, RuleDefinition]) -> None:
    for name in names:
        if name not in rules:
            raise RuleError("unknown rule", name, tuple(rules))
