"""Reads the state of a cluster: brokers, quorum, partitions (`kafkawire cluster`).

What a broker does not support, refuses or does not send in time is a reason in place of the
value; only a cluster whose Metadata cannot be read is an error.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from .existing import if_exists

if TYPE_CHECKING:
    from kafkawire.net.admin import (
        Admin,
        BrokerInfo,
        BrokerVersions,
        ClusterInfo,
        ConfigEntry,
        LogDirInfo,
        PartitionInfo,
        QuorumInfo,
        TopicInfo,
    )

T = TypeVar("T")

MIN_ISR: Final = "min.insync.replicas"
NUMBER: Final = re.compile("[0-9]{1,10}")


class Unavailable(NamedTuple):
    """Why a value was not received."""

    reason: str


class BrokerState(NamedTuple):
    """A broker: what it supports, and its log directories."""

    info: BrokerInfo
    versions: BrokerVersions | Unavailable
    log_dirs: tuple[LogDirInfo, ...] | Unavailable


class Problem(NamedTuple):
    """A partition that is offline, below min.insync.replicas, or under-replicated.

    below_min_isr: None if the configuration of its topic could not be read.
    """

    topic: str
    partition: PartitionInfo
    offline: bool
    below_min_isr: bool | None
    under_replicated: bool


class TopicConfigs(NamedTuple):
    """Values of min.insync.replicas, and the topics that were deleted meanwhile."""

    min_isr: dict[str, int] | Unavailable
    deleted: frozenset[str] = frozenset()


class ClusterState(NamedTuple):
    """The state of a cluster."""

    info: ClusterInfo
    fenced: Unavailable | None
    quorum: QuorumInfo | Unavailable
    brokers: tuple[BrokerState, ...]
    topics: tuple[TopicInfo, ...]
    min_isr: dict[str, int] | Unavailable
    problems: tuple[Problem, ...]

    @property
    def controller_id(self) -> int:
        """The active controller: the leader of the quorum, or as Metadata says; -1 if unknown."""
        quorum = self.quorum
        return self.info.controller_id if isinstance(quorum, Unavailable) else quorum.leader_id

    @property
    def healthy(self) -> bool:
        """Whether all brokers, log directories and partitions are online and in sync."""
        return not self.problems and all(map(is_online, self.brokers))


def is_online(broker: BrokerState) -> bool:
    """Return whether a broker responded, is not fenced, and has no log directory offline."""
    if broker.info.is_fenced or isinstance(broker.versions, Unavailable):
        return False
    dirs = broker.log_dirs
    return isinstance(dirs, Unavailable) or not any(each.error for each in dirs)


async def read_cluster(admin: Admin) -> ClusterState:
    """Request all of it: what must be known first, so that no other failure closes its connection.

    Brokers respond in parallel.
    """
    description = await admin.describe_cluster()
    topics = await admin.describe_topics(None)
    brokers = await asyncio.gather(*(_read_broker(admin, each) for each in description.brokers))
    with_fenced = await attempt(admin.describe_cluster(include_fenced=True))
    quorum = await attempt(admin.describe_quorum())
    fenced = with_fenced if isinstance(with_fenced, Unavailable) else None
    if not isinstance(with_fenced, Unavailable):
        brokers = _with_fenced(brokers, with_fenced.brokers)
    configs = await _configs(admin, topics.values())
    described = tuple(each for each in topics.values() if each.name not in configs.deleted)
    min_isr = configs.min_isr
    return ClusterState(
        description,
        fenced,
        quorum,
        tuple(brokers),
        described,
        min_isr,
        _problems(described, min_isr),
    )


async def attempt(value: Awaitable[T]) -> T | Unavailable:
    """Await a value, or return why it was not received."""
    from kafkawire.client.failures import BrokerError, RequestFailed
    from kafkawire.client.requests import Reason

    try:
        return await value
    except RequestFailed as error:
        missing = error.reason is Reason.NO_VERSION
        return Unavailable("not supported by the broker" if missing else str(error))
    except BrokerError as error:
        return Unavailable(str(error))


async def _read_broker(admin: Admin, info: BrokerInfo) -> BrokerState:
    versions = await attempt(admin.broker_versions(info.broker_id))
    if isinstance(versions, Unavailable):
        return BrokerState(info, versions, versions)
    return BrokerState(info, versions, await attempt(admin.describe_log_dirs(info.broker_id)))


def _with_fenced(
    brokers: Sequence[BrokerState], registered: Sequence[BrokerInfo]
) -> list[BrokerState]:
    """Add the brokers that are registered but not in Metadata, and who of them is fenced."""
    by_id = {each.info.broker_id: each for each in brokers}
    for info in registered:
        fenced = Unavailable("fenced")
        before = by_id.get(info.broker_id, BrokerState(info, fenced, fenced))
        by_id[info.broker_id] = before._replace(info=info)
    return [by_id[number] for number in sorted(by_id)]


async def _configs(admin: Admin, topics: Iterable[TopicInfo]) -> TopicConfigs:
    """Read min.insync.replicas of the topics with under-replicated partitions."""
    names = [each.name for each in topics if any(map(is_under_replicated, each.partitions))]
    configs = await attempt(if_exists(admin.describe_topic_configs(names, [MIN_ISR])))
    if configs is None:  # of a topic that was deleted meanwhile
        configs = await attempt(_configs_one_by_one(admin, names))
    if isinstance(configs, Unavailable):
        return TopicConfigs(configs)
    values = {name: entries.get(MIN_ISR) for name, entries in configs.items()}
    texts = {name: entry.value or "" for name, entry in values.items() if entry is not None}
    numbers = {name: int(text) for name, text in texts.items() if NUMBER.fullmatch(text)}
    return TopicConfigs(numbers, frozenset(names) - configs.keys())


async def _configs_one_by_one(admin: Admin, names: list[str]) -> dict[str, dict[str, ConfigEntry]]:
    """Read min.insync.replicas of the topics that exist."""
    configs: dict[str, dict[str, ConfigEntry]] = {}
    for name in names:
        configs |= await if_exists(admin.describe_topic_configs([name], [MIN_ISR])) or {}
    return configs


def is_under_replicated(partition: PartitionInfo) -> bool:
    """Return whether a replica of the partition is not in sync."""
    return len(partition.isr) < len(partition.replicas)


def _problems(
    topics: tuple[TopicInfo, ...], min_isr: dict[str, int] | Unavailable
) -> tuple[Problem, ...]:
    """List the partitions with problems, those that are offline first."""
    problems: list[Problem] = []
    minima = {} if isinstance(min_isr, Unavailable) else min_isr
    for topic in topics:
        least = minima.get(topic.name)
        for each in topic.partitions:
            behind = is_under_replicated(each)
            below = len(each.isr) < min(least, len(each.replicas)) if least is not None else None
            problem = Problem(topic.name, each, each.leader < 0, below if behind else False, behind)
            if problem.offline or behind:
                problems.append(problem)
    return tuple(sorted(problems, key=_severity))


def _severity(problem: Problem) -> tuple[bool, bool, str, int]:
    return (
        not problem.offline,
        not problem.below_min_isr,
        problem.topic,
        problem.partition.partition,
    )
