"""Renders the state of a cluster as sections or JSON.

What could not be read is named with the reason; it is never shown as zero or as empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkawire.display import bytes_text, host_and_port, plural

from ..input.cluster_state import (
    MIN_ISR,
    BrokerState,
    ClusterState,
    Problem,
    Unavailable,
    is_online,
)
from .report import Section, duration_text, top, volume_text

if TYPE_CHECKING:
    from kafkawire.net.admin import LogDirInfo, QuorumInfo, QuorumReplica

NS_PER_MS: Final = 1_000_000
LOG_DIR_HEAD: Final = ("directory", ">replicas", ">size", ">free", ">of", "state")


def sections(state: ClusterState, most: int | None, *, apis: bool) -> Iterator[Section]:
    """Render a cluster as text. most: partitions to list; None for all."""
    yield _overview(state)
    yield _brokers(state)
    yield _log_dirs(state)
    yield _quorum(state.quorum)
    yield _partitions(state.problems, most)
    yield Section(
        "Features", ("feature", ">finalized", "supported", "brokers"), _features(state.brokers)
    )
    if apis:
        yield Section("APIs", (">key", "API", "versions", "brokers"), _apis(state.brokers))


def _overview(state: ClusterState) -> Section:
    partitions = sum(len(topic.partitions) for topic in state.topics)
    controller = str(state.controller_id) if state.controller_id >= 0 else "unknown"
    below = sum(each.below_min_isr is True for each in state.problems)
    unknown = any(each.below_min_isr is None for each in state.problems)
    lines = [
        f"controller {controller}",
        f"{plural(len(state.topics), 'topic')}, {plural(partitions, 'partition')}: "
        f"{sum(each.offline for each in state.problems):,} offline, "
        f"{'unknown' if unknown else f'{below:,}'} below {MIN_ISR}, "
        f"{sum(each.under_replicated for each in state.problems):,} under-replicated",
    ]
    lines += [f"{what}: {reason}" for what, reason in unavailable(state).items()]
    return Section(f"Cluster {state.info.cluster_id or 'without an id'}", lines=lines)


def unavailable(state: ClusterState) -> dict[str, str]:
    """Name what could not be read, with the reasons; not what only one broker lacks."""
    log_dirs = {each.log_dirs for each in state.brokers}
    parts: dict[str, object] = {
        "fenced brokers": state.fenced,
        "quorum": state.quorum,
        "log directories": log_dirs.pop() if len(log_dirs) == 1 else None,
        MIN_ISR: state.min_isr,
    }
    return {name: part.reason for name, part in parts.items() if isinstance(part, Unavailable)}


def _counts(state: ClusterState) -> tuple[Counter[int], Counter[int]]:
    """Count the partitions that each broker leads, and those that it has a replica of."""
    partitions = [each for topic in state.topics for each in topic.partitions]
    leaders = Counter(each.leader for each in partitions)
    return leaders, Counter(chain.from_iterable(each.replicas for each in partitions))


def _brokers(state: ClusterState) -> Section:
    leaders, replicas = _counts(state)
    head = (">broker", "address", "rack", ">leaders", ">replicas", "state")
    rows = [
        (
            str(each.info.broker_id),
            host_and_port(each.info.host, each.info.port),
            each.info.rack or "",
            f"{leaders[each.info.broker_id]:,}",
            f"{replicas[each.info.broker_id]:,}",
            ", ".join(_states(each, state.controller_id)),
        )
        for each in state.brokers
    ]
    return Section("Brokers", head, rows, optional=("rack", "replicas"))


def _states(broker: BrokerState, controller_id: int) -> Iterator[str]:
    if broker.info.is_fenced:
        yield "fenced"
    elif isinstance(broker.versions, Unavailable):
        yield broker.versions.reason
    elif not is_online(broker):
        yield "log directory offline"
    if broker.info.broker_id == controller_id:
        yield "controller"


def _log_dirs(state: ClusterState) -> Section:
    rows = []
    for broker in () if "log directories" in unavailable(state) else state.brokers:
        number = str(broker.info.broker_id)
        if not isinstance(broker.log_dirs, Unavailable):
            rows += [(number, *log_dir_cells(each)) for each in broker.log_dirs]
        elif broker.log_dirs != broker.versions:
            rows.append((number, "", "", "", "", "", broker.log_dirs.reason))
    return Section("Log directories", (">broker", *LOG_DIR_HEAD), rows, (), ("of", "replicas"))


def log_dir_cells(one: LogDirInfo) -> tuple[str, ...]:
    """Return the cells of a log directory: path, replicas, size, free, of, state."""
    from kafkawire.client.requests import error_of

    free, size = (volume_text(each, one.total) for each in (one.usable, one.total))
    error = error_of(one.error).name if one.error else ""
    return (one.path, f"{one.replicas:,}", bytes_text(one.size), free, size, error)


def _quorum(quorum: QuorumInfo | Unavailable) -> Section:
    if isinstance(quorum, Unavailable):
        return Section("Quorum")
    head = (">replica", "role", ">log end", ">lag", ">behind by")
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)
    rows = [
        (str(each.replica_id), "leader" if each is leader else role, *_progress(each, leader))
        for role, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
        for each in replicas
    ]
    lines = [f"epoch {quorum.leader_epoch}, high watermark {quorum.high_watermark}"]
    return Section("Quorum", head, rows, lines)


def _progress(replica: QuorumReplica, leader: QuorumReplica | None) -> tuple[str, ...]:
    """Return the log end offset, and how far it is behind the leader's: in records, in time."""
    lag, behind_ms = lags(replica, leader)
    return (
        "unknown" if replica.log_end_offset < 0 else str(replica.log_end_offset),
        "unknown" if lag is None else f"{lag:,}",
        "" if behind_ms is None else duration_text(behind_ms * NS_PER_MS),
    )


def lags(replica: QuorumReplica, leader: QuorumReplica | None) -> tuple[int | None, int | None]:
    """Return how many records and milliseconds a replica is behind; None: unknown, or it leads."""
    if leader is None:
        return None, None
    if replica is leader:
        return 0, None
    ends = (leader.log_end_offset, replica.log_end_offset)
    times = (leader.last_caught_up_timestamp, replica.last_caught_up_timestamp)
    lag, behind = (None if min(pair) < 0 else max(0, pair[0] - pair[1]) for pair in (ends, times))
    return lag, behind


def _partitions(problems: tuple[Problem, ...], most: int | None) -> Section:
    shown = top(problems, most)
    head = ("topic", ">partition", "leader", "replicas", "in sync", "problem")
    rows = [
        (
            each.topic,
            str(each.partition.partition),
            str(each.partition.leader) if each.partition.leader >= 0 else "none",
            ",".join(map(str, each.partition.replicas)),
            ",".join(map(str, each.partition.isr)),
            _problem(each),
        )
        for each in shown.first
    ]
    title, optional = "Partitions with problems", ("replicas", "in sync")
    return Section(title, head, rows, shown.more("partition"), optional)


def _problem(one: Problem) -> str:
    if one.offline:
        return "offline"
    return f"below {MIN_ISR}" if one.below_min_isr else "under-replicated"


def _features(brokers: tuple[BrokerState, ...]) -> list[tuple[str, ...]]:
    return _by_brokers(
        {
            each.info.broker_id: [
                (one.name, str(one.level), _range(one.lowest, one.highest))
                for one in each.versions.features
            ]
            for each in brokers
            if not isinstance(each.versions, Unavailable)
        },
    )


def _apis(brokers: tuple[BrokerState, ...]) -> list[tuple[str, ...]]:
    rows = {
        each.info.broker_id: [
            (one.api_key, one.name or "unknown", _range(one.lowest, one.highest))
            for one in each.versions.apis
        ]
        for each in brokers
        if not isinstance(each.versions, Unavailable)
    }
    return [(str(key), *rest) for key, *rest in _by_brokers(rows)]


def _by_brokers(rows: dict[int, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Merge equal rows of brokers, with the brokers that have them as last column."""
    brokers_of: dict[tuple[Any, ...], list[int]] = {}
    for number, each in rows.items():
        for row in each:
            brokers_of.setdefault(row, []).append(number)
    return [
        (*row, "all" if len(have) == len(rows) else ", ".join(map(str, have)))
        for row, have in sorted(brokers_of.items())
    ]


def _range(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


# -- JSON


def as_json(state: ClusterState) -> dict[str, Any]:
    """Render a cluster as JSON; null is what could not be read."""
    leaders, replicas = _counts(state)
    problems = [(each, _partition_json(each)) for each in state.problems]
    unknown = any(each.below_min_isr is None for each in state.problems)
    return {
        "cluster_id": state.info.cluster_id,
        "controller_id": state.controller_id,
        "healthy": state.healthy,
        "brokers": [
            {
                **_broker_json(each),
                "leaders": leaders[each.info.broker_id],
                "replicas": replicas[each.info.broker_id],
            }
            for each in state.brokers
        ],
        "quorum": _quorum_json(state.quorum),
        "offline": [row for each, row in problems if each.offline],
        "below_min_isr": None if unknown else [row for each, row in problems if each.below_min_isr],
        "under_replicated": [row for each, row in problems if each.under_replicated],
        "unavailable": unavailable(state),
    }


def _partition_json(one: Problem) -> dict[str, Any]:
    fields = ("partition", "leader", "replicas", "isr")
    return {"topic": one.topic, **{name: getattr(one.partition, name) for name in fields}}


def _broker_json(broker: BrokerState) -> dict[str, Any]:
    versions, dirs = broker.versions, broker.log_dirs
    failed = versions if isinstance(versions, Unavailable) else None
    return {
        **broker.info._asdict(),
        "error": failed.reason if failed else None,
        "features": _rows_json(versions, "features"),
        "apis": _rows_json(versions, "apis"),
        "log_dirs_error": dirs.reason if isinstance(dirs, Unavailable) else None,
        "log_dirs": None if isinstance(dirs, Unavailable) else [one._asdict() for one in dirs],
    }


def _rows_json(part: NamedTuple, name: str) -> list[dict[str, Any]] | None:
    """Render the rows of a part that was received."""
    return None if isinstance(part, Unavailable) else [row._asdict() for row in getattr(part, name)]


def _quorum_json(quorum: QuorumInfo | Unavailable) -> dict[str, Any] | None:
    if isinstance(quorum, Unavailable):
        return None
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)

    def row(each: QuorumReplica) -> dict[str, Any]:
        lag, behind_ms = lags(each, leader)
        fields = each._asdict() | {"directory_id": each.directory_id.hex()}
        return {**fields, "lag": lag, "behind_ms": behind_ms}

    return {
        "leader_id": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [row(each) for each in quorum.voters],
        "observers": [row(each) for each in quorum.observers],
    }
