"""Makes the JSON form of what the page shows beside exchanges over time: load, lag, topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkawire.reports.tables.lag import LagOverTime
from kafkawire.reports.tables.load import OTHERS as OTHER_CLIENTS
from kafkawire.reports.tables.load import LoadOverTime
from kafkawire.reports.topics import PRODUCED
from kafkawire.reports.topology import Key, Link, Topology

from .bodies import shown_text

if TYPE_CHECKING:
    from kafkawire.reports.client import Client

MAX_CELLS: Final = 6000
MAX_CLIENTS: Final = 12
MAX_GROUPS: Final = 50
MAX_PARTITIONS: Final = 12
"""Partitions of a group, those with the highest lags."""

MAX_NODES: Final = 12
"""Producers, topics, and consumers."""


def load_json(load: LoadOverTime) -> dict[str, Any]:
    """Return the parts of latencies over time.

    A cell is [bucket, API, client, responses, network, waiting and broker in nanoseconds]; client
    -1 are the others.
    """
    cells = load.by_client(MAX_CLIENTS, MAX_CELLS)
    apis = sorted({key.api for key in cells})
    clients = sorted({key.client for key in cells} - {OTHER_CLIENTS})
    api_at = {api: at for at, api in enumerate(apis)}
    client_at = {client: at for at, client in enumerate(clients)} | {OTHER_CLIENTS: -1}
    first = min((key.bucket for key in cells), default=0)
    return {
        "first_ms": first * load.width_ns / 1e6,
        "width_ms": load.width_ns / 1e6,
        "apis": apis,
        "clients": [shown_text(client) for client in clients],
        "cells": [
            [
                key.bucket - first,
                api_at[key.api],
                client_at[key.client],
                cell.responses,
                cell.network_ns,
                cell.waited_ns,
                cell.broker_ns,
            ]
            for key, cell in sorted(cells.items())
            if cell.responses
        ],
    }


def lag_json(lag: LagOverTime) -> dict[str, Any]:
    """Return the lags of the partitions of each group, by group, those with the highest first.

    A point is the time in milliseconds, the lag, and the committed offset.
    """
    partitions: dict[str, dict[str, list[list[float]]]] = {}
    highest: Counter[tuple[str, str]] = Counter()
    for key, cell in lag.series():
        if cell.lag is None:
            continue
        group, name = shown_text(key.group_id), shown_text(f"{lag.label(key)}-{key.partition}")
        points = partitions.setdefault(group, {}).setdefault(name, [])
        points.append([cell.time_ns / 1e6, cell.lag, cell.offset])
        highest[group, name] = max(highest[group, name], cell.max_lag or 0)
    return {
        group: {
            "rows": [
                {"partition": name, "points": of_group[name]}
                for name in sorted(of_group, key=lambda name: (-highest[group, name], name))
            ][:MAX_PARTITIONS],
            "left_out": max(0, len(of_group) - MAX_PARTITIONS),
        }
        for group, of_group in list(partitions.items())[:MAX_GROUPS]
    }


def listed(links: dict[Key, Link], name: Callable[[Key], str]) -> dict[str, int]:
    """Number the nodes with the most bytes, or exchanges."""
    sizes: dict[str, tuple[int, int]] = {}
    for key, link in links.items():
        size, exchanges = sizes.get(name(key), (0, 0))
        sizes[name(key)] = size + link.bytes, exchanges + link.exchanges
    largest = sorted(sizes, key=lambda one: sizes[one], reverse=True)[:MAX_NODES]
    return {one: at for at, one in enumerate(largest)}


def topology_json(topology: Topology, clients: Iterable[Client]) -> dict[str, Any]:
    """Return the links between clients and topics. clients: their groups are named.

    Nodes that are not listed are together, under the number -1.
    """
    links = topology.links
    groups: dict[str, dict[str, None]] = {}
    for client in clients:
        named = groups.setdefault(client.client_id or client.address, {})
        named |= dict.fromkeys(sorted(client.groups))
    topics = listed(links, lambda key: str(key.topic))
    producers = listed(
        {key: link for key, link in links.items() if key.direction == PRODUCED},
        lambda key: key.client,
    )
    consumers = listed(
        {key: link for key, link in links.items() if key.direction != PRODUCED},
        lambda key: key.client,
    )
    drawn: dict[tuple[bool, int, int], Link] = {}
    for key, link in links.items():
        produced = key.direction == PRODUCED
        nodes = producers if produced else consumers
        ends = nodes.get(key.client, -1), topics.get(str(key.topic), -1)
        drawn.setdefault((produced, *ends), Link()).add(link)
    return {
        "producers": [{"name": shown_text(name), "groups": []} for name in producers],
        "topics": [{"name": shown_text(name)} for name in topics],
        "consumers": [
            {"name": shown_text(name), "groups": list(map(shown_text, groups.get(name, ())))[:3]}
            for name in consumers
        ],
        "links": [
            {
                "produced": produced,
                "client": client,
                "topic": topic,
                "bytes": link.bytes,
                "exchanges": link.exchanges,
                "errors": link.errors,
            }
            for (produced, client, topic), link in drawn.items()
        ],
    }
