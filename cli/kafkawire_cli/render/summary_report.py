"""Builds the report of `kafkawire summary` from several collectors in one pass.

Text and JSON contain the same lists; entries that are not shown are counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Status
from kafkawire.display import bytes_text, plural, time_text
from kafkawire.reports.apis import Apis
from kafkawire.reports.clients import Clients
from kafkawire.reports.groups.histories import Groups
from kafkawire.reports.groups.silences import Silences
from kafkawire.reports.problems import Payload, Problem, Problems
from kafkawire.reports.reading import Collector, Reading
from kafkawire.reports.topics import Topic, Topics
from kafkawire.reports.watermarks import Watermarks

from ..input.options import SHOWN
from . import sections
from .group_timeline import overview as groups_overview
from .report import Section, count_text, duration_text, list_text, top

LENIENT: Final = (
    "lenient: decoded as a whole, though its sender's encoding differs from the schema; "
    "no trouble by itself"
)
PROTOCOL_NAMES: Final = {None: "unknown", "kafka": "Kafka"}
"""Protocols with another name in the report."""


class Summary:
    """The summary of a set of captures."""

    def __init__(self, captures: Reading) -> None:
        self.captures = captures
        self.apis = Apis()
        self.clients = Clients()
        self.watermarks = Watermarks(captures)
        self.silences = Silences()
        self.groups = Groups(captures, self.watermarks, self.silences)
        self.payload = Payload(filtered=captures.where is not None)
        self.problems = Problems(captures)
        self.topics = Topics(captures.context.names, self.problems.corrupt_records)

    def read(self) -> None:
        """Read the captures in one pass."""
        self.captures.read(*self.collectors)

    @property
    def collectors(self) -> list[Collector]:
        """The collectors, in the order in which they need each other."""
        return [
            self.clients,
            self.watermarks,
            self.silences,
            self.groups,
            self.apis,
            self.payload,
            self.problems,
            self.topics,
        ]

    # -- as text

    def sections(self, most: int | None) -> list[Section]:
        """Return the report."""
        topics = self.topics.all
        apis = top(self.apis.in_order(HARM), _calls(most))
        return [
            Section("", lines=self._facts(topics)),
            sections.requests(apis, self.apis.totals(), longest=False),
            sections.topics(top(topics, most)),
            sections.clients(top(sections.sorted_clients(self.clients.all), most), sizes=False),
            groups_overview(top(self.groups.in_order(HARM), most)),
            sections.undecoded(self.clients, most),
            _problems(self.problems.all),
        ]

    def _facts(self, topics: list[Topic]) -> list[str]:
        watch, clients = self.captures.watch, self.clients
        kinds = list_text(
            f"{count:,} {PROTOCOL_NAMES.get(kind, kind)}"
            for kind, count in clients.connections.most_common()
        )
        facts = {
            "captures": f"{plural(len(self.captures.traffic.sources), 'file')}, "
            f"{plural(watch.packets, 'packet')}{self._others()}, {bytes_text(watch.bytes)}",
            "time": self._span(),
            "connections": kinds + (f"; {clients.reset:,} reset" if clients.reset else ""),
            "brokers": list_text(broker for broker, _ in clients.brokers.most_common()),
            "payload": _payload(self.payload),
            "codecs": list_text(f"{codec} {n:,}" for codec, n in _codecs(topics).most_common()),
        }
        return [f"{label + ':':13}{text}" for label, text in facts.items() if text]

    def _others(self) -> str:
        others = self.captures.traffic.other_packets
        return f" ({others:,} without TCP)" if others else ""

    def _span(self) -> str:
        first, last = self.clients.first_ns, self.clients.last_ns
        if NO_TIME in (first, last):
            return ""
        began = (time_text(max(first, 1)) or "")[:19].replace("T", " ")
        return f"{began} UTC, for {duration_text(last - first)}"

    # -- as JSON

    def json(self, captures: list[str], most: int | None) -> dict[str, Any]:
        """Return the report as JSON."""
        collector = self.clients
        all_topics = self.topics.all
        topics = top(all_topics, most)
        clients = top(sections.sorted_clients(collector.all), most)
        groups = top(self.groups.in_order(HARM), most)
        calls, brokers = (
            top(self.apis.in_order(HARM), most),
            top(collector.brokers.most_common(), most),
        )
        not_read = top(collector.undecoded.most_common(), most)
        return {
            "captures": captures,
            "packets": self.captures.watch.packets,
            "other_packets": self.captures.traffic.other_packets,
            "file_bytes": self.captures.watch.bytes,
            "first_time": time_text(collector.first_ns),
            "last_time": time_text(collector.last_ns),
            "payload": self.payload.json(),
            "connections": {
                "total": collector.connections.total(),
                "reset": collector.reset,
                "protocols": {kind or "none": n for kind, n in collector.connections.most_common()},
            },
            "brokers": [{"broker": broker, "connections": n} for broker, n in brokers.first],
            "calls": sections.requests_json(calls.first),
            "codecs": dict(_codecs(all_topics).most_common()),
            "topics": [topic.json() for topic in topics.first],
            "clients": [client.json() for client in clients.first],
            "groups": [group.json() for group in groups.first],
            "left_out": {
                "topics": topics.left_out,
                "clients": clients.left_out,
                "groups": groups.left_out,
                "calls": calls.left_out,
                "brokers": brokers.left_out,
                "unread": not_read.left_out,
            },
            "unread": sections.undecoded_json(not_read),
            "problems": [problem.json() for problem in self.problems.all],
        }


HARM: Final = "harm"
"""The order of requests: what failed or has no response first, then what took longest."""

MAX_APIS: Final = 40
"""APIs shown without --top; most captures have fewer."""


def _calls(most: int | None) -> int | None:
    return MAX_APIS if most == SHOWN else most


def _codecs(topics: list[Topic]) -> Counter[str]:
    codecs: Counter[str] = Counter()
    for topic in topics:
        codecs.update(topic.codecs)
    return codecs


def _payload(payload: Payload) -> str:
    """Summarise the payload by decoding status."""
    parts = [
        f"{bytes_text(size)} {kind.replace('_', ' ')}"
        for kind, size in payload.kinds().items()
        if size
    ]
    text = f"{bytes_text(payload.captured)} captured" + (f": {', '.join(parts)}" if parts else "")
    return text + (f"; {bytes_text(payload.missing)} missing" if payload.missing else "")


def _problems(problems: list[Problem]) -> Section:
    rows = [
        (
            one.kind.replace("_", " "),
            count_text(one.count),
            bytes_text(one.bytes),
            f"{one.first.file}:{one.first.packet}",
            one.first.error,
        )
        for one in problems
    ]
    head = ("kind", ">count", ">bytes", "first at", "error")
    lenient = any(one.kind == Status.LENIENT for one in problems)
    return Section("Problems", head, rows, (LENIENT,) * lenient, ("bytes", "first at"))
