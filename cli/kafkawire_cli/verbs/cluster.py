"""`kafkawire cluster`: the brokers of a live cluster, its controller, features and APIs.

Law: a broker that does not respond is an error; what one broker says is shown as that broker's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafkawire.display import plural

from ..input import cluster as live
from ..input.cluster import BootstrapOption, SettingOption
from ..input.options import Form
from ..render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, BrokerVersions, ClusterInfo, TopicInfo

Versions = dict[int, "BrokerVersions"]


def cluster(
    bootstrap: BootstrapOption = "localhost:9092",
    apis: Annotated[
        bool, typer.Option("--apis", help="Show the versions of all APIs, by broker.")
    ] = False,
    setting: SettingOption = None,
    form: Annotated[Form, typer.Option("--format", "-f", help="Output format.")] = Form.TABLE,
) -> None:
    """Show the brokers of a cluster, its controller, features and APIs.

    \b
    kafkawire cluster -b localhost:9092
    kafkawire cluster -b localhost:9092 --apis
    kafkawire cluster -b localhost:9092 -f json | jq '.brokers[].host'

    Exit code 1: the cluster cannot be reached, or an error response; 2: usage error.
    """

    async def work() -> None:
        async with live.admin(bootstrap, setting) as admin:
            info = await admin.describe_cluster()
            numbers = [broker.broker_id for broker in info.brokers]
            found = await asyncio.gather(*map(admin.broker_versions, numbers))
            versions = dict(zip(numbers, found, strict=True))
            topics = await _topics(admin)
        print_report(
            form,
            lambda: _sections(info, versions, topics, apis=apis),
            lambda: _json(info, versions, topics),
        )

    live.run(work)


async def _topics(admin: Admin) -> list[TopicInfo]:
    names = await admin.list_topics()
    return list((await admin.describe_topics(names)).values()) if names else []


def _under_replicated(topics: list[TopicInfo]) -> list[tuple[str, int]]:
    return [
        (topic.name, each.partition)
        for topic in topics
        for each in topic.partitions
        if len(each.isr) < len(each.replicas)
    ]


def _counts(topics: list[TopicInfo]) -> tuple[Counter[int], Counter[int]]:
    """Count the partitions that each broker leads, and those that it has a replica of."""
    partitions = [each for topic in topics for each in topic.partitions]
    leaders = Counter(each.leader for each in partitions)
    return leaders, Counter(chain.from_iterable(each.replicas for each in partitions))


def _sections(
    info: ClusterInfo, versions: Versions, topics: list[TopicInfo], *, apis: bool
) -> list[Section]:
    behind = _under_replicated(topics)
    partitions = sum(len(topic.partitions) for topic in topics)
    lines = [
        f"controller {info.controller_id if info.controller_id >= 0 else 'unknown'}",
        f"{plural(len(topics), 'topic')}, {plural(partitions, 'partition')}, "
        f"{len(behind)} under-replicated",
    ]
    leaders, replicas = _counts(topics)
    head: tuple[str, ...] = (">broker", "address", "rack", ">leaders", ">replicas", ">APIs", "")
    rows = [
        (
            str(each.broker_id),
            f"{each.host}:{each.port}",
            each.rack or "",
            f"{leaders[each.broker_id]:,}",
            f"{replicas[each.broker_id]:,}",
            str(len(versions[each.broker_id].apis)),
            "controller" if each.broker_id == info.controller_id else "",
        )
        for each in info.brokers
    ]
    title = f"Cluster {info.cluster_id or 'without an id'}"
    sections = [Section(title, lines=lines), Section("Brokers", head, rows)]
    if behind:
        places = [(topic, str(partition)) for topic, partition in behind]
        sections.append(Section("Under-replicated", ("topic", ">partition"), places))
    features = _features(versions)
    if features:
        head = ("feature", ">level", "supported", "brokers")
        sections.append(Section("Features", head, features))
    if apis:
        head = (">key", "API", "versions", "brokers")
        sections.append(Section("APIs", head, _apis(versions)))
    return sections


def _features(versions: Versions) -> list[tuple[str, ...]]:
    found: dict[tuple[str, ...], list[int]] = {}
    for broker, each in versions.items():
        for one in each.features:
            row = (one.name, str(one.level), _range(one.lowest, one.highest))
            found.setdefault(row, []).append(broker)
    return [(*row, _brokers(numbers, versions)) for row, numbers in sorted(found.items())]


def _apis(versions: Versions) -> list[tuple[str, ...]]:
    found: dict[tuple[int, str, str], list[int]] = {}
    for broker, each in versions.items():
        for one in each.apis:
            row = (one.api_key, one.name or "unknown", _range(one.lowest, one.highest))
            found.setdefault(row, []).append(broker)
    return [
        (str(key), name, text, _brokers(numbers, versions))
        for (key, name, text), numbers in sorted(found.items())
    ]


def _range(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def _brokers(numbers: list[int], versions: Versions) -> str:
    return "all" if len(numbers) == len(versions) else ", ".join(map(str, numbers))


def _json(info: ClusterInfo, versions: Versions, topics: list[TopicInfo]) -> dict[str, Any]:
    leaders, replicas = _counts(topics)
    return {
        "cluster_id": info.cluster_id,
        "controller_id": info.controller_id,
        "brokers": [
            {
                **each._asdict(),
                "leaders": leaders[each.broker_id],
                "replicas": replicas[each.broker_id],
                "features": [one._asdict() for one in versions[each.broker_id].features],
                "apis": [one._asdict() for one in versions[each.broker_id].apis],
            }
            for each in info.brokers
        ],
        "under_replicated": [
            {"topic": topic, "partition": partition}
            for topic, partition in _under_replicated(topics)
        ],
    }
