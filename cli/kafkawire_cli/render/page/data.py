"""Collects the data of the page in one pass, and makes its JSON form.

The size of the data is bounded, whatever the captures contain; each list says how many entries
were left out. Untrusted text is escaped as for a terminal; secrets are hidden as in `decode`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.display import time_text
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.reports.buckets import LATENCIES_PER_DOUBLING, Buckets, Counts
from kafkawire.reports.distributions import KINDS, Distribution, Distributions
from kafkawire.reports.exchanges import Slowest
from kafkawire.reports.readiness import judge
from kafkawire.reports.tables.lag import LagOverTime
from kafkawire.reports.tables.load import LoadOverTime
from kafkawire.reports.topology import Topology

from ..messages import View
from ..report import duration_text, top
from ..summary_report import Summary
from .bodies import Bodies, shown_text
from .findings import finding_json, scene_of
from .groups import group_json
from .over_time import lag_json, load_json, topology_json

if TYPE_CHECKING:
    from kafkawire.reports.client import Client
    from kafkawire.reports.diagnosis.diagnosis import Diagnosis
    from kafkawire.reports.diagnosis.rule import Scene
    from kafkawire.reports.reading import Reading
    from kafkawire.reports.topics import Topic
    from kafkawire_codegen.releases import Releases

MAX_SERIES: Final = 12
"""Clients, and topics, that charts can be filtered by."""

MAX_CELLS: Final = 12_000
MAX_ROWS: Final = 200
"""Rows of a table."""

MAX_GROUPS: Final = 50
MAX_VERSIONS: Final = 40
"""APIs of a client whose versions are listed."""

MAX_BYTES: Final = 1_500_000
"""Size of all groups together, and of all bodies of the slowest exchanges."""

SLOWEST: Final = 30
SLOWEST_OF_API: Final = 3
T = TypeVar("T")
Diagnose: TypeAlias = "Callable[[Scene], Diagnosis]"


class Target(NamedTuple):
    """The release that clients are checked against."""

    release: str
    releases: Releases


class PageData:
    """The data of the page. view: what is shown of messages. diagnose: makes the diagnosis."""

    def __init__(self, captures: Reading, view: View, target: Target, diagnose: Diagnose) -> None:
        self._captures = captures
        self._target = target
        self._summary = Summary(captures)
        self._buckets = Buckets()
        self._distributions = Distributions()
        self._diagnosis = diagnose(scene_of(self._summary, target.releases))
        self._load = LoadOverTime()
        self._lag = LagOverTime(captures, self._summary.watermarks)
        self._topology = Topology(captures)
        self._slowest = Slowest(SLOWEST, SLOWEST_OF_API, Bodies(captures, view).exchange)

    def read(self) -> None:
        """Read the captures in one pass."""
        self._captures.read(
            *self._summary.collectors,
            *self._diagnosis.collectors,
            self._buckets,
            self._distributions,
            self._load,
            self._lag,
            self._topology,
            self._slowest,
        )

    def json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the data. names: the captures as given."""
        return {
            "captures": [shown_text(name) for name in names[:MAX_ROWS]],
            "interrupted": self._captures.interrupted,
            "overview": self._overview(),
            "findings": listed(self._diagnosis.findings, finding_json),
            "series": self._series(),
            "distributions": {kind: self._distribution(kind) for kind in KINDS},
            "load": load_json(self._load),
            "topology": topology_json(self._topology, self._summary.clients.all),
            "groups": self._groups(),
            "lag": lag_json(self._lag),
            "slowest": self._slowest_exchanges(),
            "clients": self._clients(),
            "problems": self._problems(),
        }

    # -- parts

    def _overview(self) -> dict[str, Any]:
        summary, clients = self._summary, self._summary.clients
        apis = summary.apis.all
        first, last = clients.first_ns, clients.last_ns
        timed = NO_TIME not in (first, last)
        return {
            "files": len(self._captures.traffic.sources),
            "packets": self._captures.watch.packets,
            "bytes": self._captures.watch.bytes,
            "first": time_text(first),
            "last": time_text(last),
            "duration": duration_text(last - first) if timed else "",
            "connections": {kind or "unknown": n for kind, n in clients.connections.items()},
            "reset": clients.reset,
            "brokers": len(clients.brokers),
            "requests": sum(api.requests for api in apis),
            "responses": sum(api.responses for api in apis),
            "errors": sum(api.errors for api in apis),
            "without_response": sum(api.without_response for api in apis),
            "payload": summary.payload.json(),
            "topics": listed(summary.topics.all, _topic_json),
        }

    def _series(self) -> dict[str, Any]:
        counts = self._buckets.counts(MAX_SERIES, MAX_CELLS)
        return series_json(counts) | {"without_time": self._buckets.without_time}

    def _distribution(self, kind: str) -> dict[str, Any]:
        return listed(self._distributions.of(kind), _distribution_json)

    def _groups(self) -> dict[str, Any]:
        groups = sorted(
            self._summary.groups.all, key=lambda one: (-one.events - one.commits, one.group_id)
        )
        until = self._summary.clients.last_ns
        rows = list(within((group_json(one, until) for one in groups[:MAX_GROUPS]), MAX_BYTES))
        return {"rows": rows, "left_out": len(groups) - len(rows)}

    def _slowest_exchanges(self) -> list[dict[str, Any]]:
        """Return the slowest exchanges; the fastest of them without bodies, if they are large."""
        slowest = self._slowest.all
        whole = sum(1 for _ in within(slowest, MAX_BYTES))
        for one in slowest[whole:]:
            for message in (one["request"], one["response"]):
                if message is not None:
                    message["body"] = "(left out: the bodies of slower exchanges are large)"
        return slowest

    def _clients(self) -> dict[str, Any]:
        target = self._target
        judged = judge(self._summary.clients, target.releases, target.release)
        verdicts = [
            *((one, "not ready") for one in judged.not_ready),
            *((one, "ready") for one in judged.ready),
            *((one, "not checked") for one in judged.unjudged),
        ]

        def client(entry: tuple[Any, str]) -> dict[str, Any]:
            verdict, ready = entry
            refused = [f"{call.name} v{call.version}" for call in verdict.refused]
            reason = f"uses {', '.join(refused)}" if refused else verdict.reason
            return _client_json(verdict.client) | {"ready": ready, "reason": shown_text(reason)}

        return {"target": target.release} | listed(verdicts, client)

    def _problems(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": one.kind.replace("_", " "),
                "count": one.count,
                "bytes": one.bytes,
                "places": [
                    {
                        "file": shown_text(at.file),
                        "packet": at.packet,
                        "error": shown_text(at.error),
                    }
                    for at in one.examples
                ],
            }
            for one in self._summary.problems.all
        ]


def listed(
    entries: Sequence[T], to_json: Callable[[T], dict[str, Any]], most: int = MAX_ROWS
) -> dict[str, Any]:
    """Return the first entries of a list, and how many were left out."""
    shown = top(entries, most)
    return {"rows": [to_json(one) for one in shown.first], "left_out": shown.left_out}


def within(rows: Iterable[T], size: int) -> Iterator[T]:
    """Take the first entries whose JSON is not larger than `size` together; one at least."""
    used = 0
    for row in rows:
        used += len(json.dumps(row))
        if used > size and used > len(json.dumps(row)):
            return
        yield row


def series_json(counts: Counts) -> dict[str, Any]:
    """Return the cells, with numbers in place of names.

    A cell is [bucket, API, client, topics, requests, responses, errors, request bytes, response
    bytes, error codes and counts, latency classes and counts]. Clients and topics of number -1 are
    the others.
    """
    apis = sorted({key.api for key in counts.cells})
    codes = sorted({code for cell in counts.cells.values() for code in cell.codes})
    clients = _renumbered({key.client for key in counts.cells})
    topics = _renumbered({one for key in counts.cells for one in key.topics})
    first = min((key.bucket for key in counts.cells), default=0)
    api_at = {api: at for at, api in enumerate(apis)}
    code_at = {code: at for at, code in enumerate(codes)}
    return {
        "first_ms": first * counts.width_ns / 1e6,
        "width_ms": counts.width_ns / 1e6,
        "per_doubling": LATENCIES_PER_DOUBLING,
        "apis": apis,
        "codes": [ErrorCode.name_of(code) for code in codes],
        "clients": [shown_text(counts.clients[one]) for one in clients if one >= 0],
        "topics": [shown_text(counts.topics[one]) for one in topics if one >= 0],
        "cells": [
            [
                key.bucket - first,
                api_at[key.api],
                clients[key.client],
                [topics[one] for one in key.topics],
                cell.requests,
                cell.responses,
                cell.errors,
                cell.request_bytes,
                cell.response_bytes,
                [part for code, n in cell.codes.items() for part in (code_at[code], n)],
                [part for pair in sorted(cell.latency.items()) for part in pair],
            ]
            for key, cell in sorted(counts.cells.items())
        ],
    }


def _renumbered(used: set[int]) -> dict[int, int]:
    """Number the names in use from 0; the others stay -1."""
    numbers = {one: at for at, one in enumerate(sorted(used - {-1}))}
    return {**numbers, -1: -1}


def _distribution_json(one: Distribution) -> dict[str, Any]:
    return {"name": None if one.name is None else shown_text(one.name), **one.json()}


def _topic_json(topic: Topic) -> dict[str, Any]:
    amounts = {
        f"{way}_{what}": getattr(amount, what)
        for way, amount in topic.directions.items()
        for what in ("records", "bytes")
    }
    return {
        "topic": shown_text(topic.label),
        "partitions": len(topic.partitions),
        **amounts,
        "refused_records": topic.refused,
        "unanswered_records": topic.unanswered,
        "codecs": list(topic.codecs),
    }


def _client_json(client: Client) -> dict[str, Any]:
    return {
        "client": shown_text(client.client_id or ""),
        "address": client.address,
        "software": shown_text(str(client.software or "")),
        "connections": client.connections,
        "requests": client.requests,
        "errors": client.errors,
        "bytes": client.request_bytes + client.response_bytes,
        "groups": [shown_text(group) for group in list(client.groups)[:MAX_SERIES]],
        "versions": [
            f"{shown_text(api)} {','.join(f'v{one}' for one in versions[:MAX_SERIES])}"
            for api, versions in list(client.apis().items())[:MAX_VERSIONS]
        ],
    }
