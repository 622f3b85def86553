"""What a summary tells: one tally a question, read in one pass.

Law: every list is there in both forms; what is not shown is counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import time_text
from kafkawire.reports.apis import Apis
from kafkawire.reports.clients import Clients
from kafkawire.reports.groups import Groups
from kafkawire.reports.problems import Payload, Problem, Problems
from kafkawire.reports.reading import Reading
from kafkawire.reports.topics import Topic, Topics
from kafkawire.reports.watermarks import Watermarks

from ..input.sources import SHOWN, top
from ..verbs.capture_topics import amounts
from ..verbs.clients import busiest, unread, unread_json
from ..verbs.clients import overview as clients_overview
from ..verbs.latency import as_json as calls_json
from ..verbs.latency import calls
from .group_timeline import overview as groups_overview
from .report import Section, bytes_text, count_text, duration_text, list_text, plural

CALLED: Final = {None: "of which nothing could be said", "kafka": "Kafka"}
"""Protocols that go by another name here."""


class Summary:
    """What a capture holds."""

    def __init__(self, captures: Reading) -> None:
        self.captures = captures
        self.apis = Apis()
        self.clients = Clients()
        self.watermarks = Watermarks(captures)
        self.groups = Groups(captures, self.clients, self.watermarks)
        self.payload = Payload()
        self.problems = Problems(captures)
        self.topics = Topics(captures.context.names, self.problems.corrupt_records)

    def read(self) -> None:
        """Read the capture, once."""
        self.captures.read(
            self.clients,
            self.watermarks,
            self.groups,
            self.apis,
            self.payload,
            self.problems,
            self.topics,
        )

    # -- for a person

    def sections(self, most: int | None) -> list[Section]:
        """Make the report."""
        topics = self.topics.all
        return [
            Section("", lines=self._facts(topics)),
            calls(top(self.apis.all, _calls(most)), self.apis.totals(), longest=False),
            amounts(top(topics, most)),
            clients_overview(top(busiest(self.clients.all), most), sizes=False),
            groups_overview(top(self.groups.all, most)),
            unread(self.clients, most),
            _problems(self.problems.all),
        ]

    def _facts(self, topics: list[Topic]) -> list[str]:
        watch, clients = self.captures.watch, self.clients
        kinds = list_text(
            f"{count:,} {CALLED.get(kind, kind)}"
            for kind, count in clients.connections.most_common()
        )
        said = {
            "captures": f"{plural(len(self.captures.context.traffic.sources), 'file')}, "
            f"{plural(watch.packets, 'packet')}, {bytes_text(watch.bytes)}",
            "time": self._span(),
            "connections": kinds + (f"; {clients.reset:,} reset" if clients.reset else ""),
            "brokers": list_text(broker for broker, _ in clients.brokers.most_common()),
            "payload": _payload(self.payload),
            "codecs": list_text(f"{codec} {n:,}" for codec, n in _codecs(topics).most_common()),
        }
        return [f"{label + ':':13}{text}" for label, text in said.items() if text]

    def _span(self) -> str:
        first, last = self.clients.first_ns, self.clients.last_ns
        if NO_TIME in (first, last):
            return ""
        began = (time_text(first) or "")[:19].replace("T", " ")
        return f"{began} UTC, for {duration_text(last - first)}"

    # -- for a program

    def json(self, given: list[str], most: int | None) -> dict[str, Any]:
        """Make the JSON form."""
        tally = self.clients
        all_topics = self.topics.all
        topics = top(all_topics, most)
        clients = top(busiest(tally.all), most)
        groups = top(self.groups.all, most)
        calls, brokers = top(self.apis.all, most), top(tally.brokers.most_common(), most)
        not_read = top(tally.undecoded.most_common(), most)
        return {
            "captures": given,
            "packets": self.captures.watch.packets,
            "file_bytes": self.captures.watch.bytes,
            "first_time": time_text(tally.first_ns),
            "last_time": time_text(tally.last_ns),
            "payload": self.payload.json(),
            "connections": {
                "total": tally.connections.total(),
                "reset": tally.reset,
                "protocols": {kind or "none": n for kind, n in tally.connections.most_common()},
            },
            "brokers": [{"broker": broker, "connections": n} for broker, n in brokers.first],
            "calls": calls_json(calls.first),
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
            "unread": unread_json(not_read),
            "problems": [problem.json() for problem in self.problems.all],
        }


CALLS: Final = 40
"""Calls that a person sees, where --top does not say: most captures have fewer APIs."""


def _calls(most: int | None) -> int | None:
    return CALLS if most == SHOWN else most


def _codecs(topics: list[Topic]) -> Counter[str]:
    made: Counter[str] = Counter()
    for topic in topics:
        made.update(topic.codecs)
    return made


def _payload(payload: Payload) -> str:
    """Say what became of the payload."""
    parts = [
        f"{bytes_text(size)} {kind.replace('_', ' ')}"
        for kind, size in payload.kinds().items()
        if size
    ]
    said = f"{bytes_text(payload.captured)} captured" + (f": {', '.join(parts)}" if parts else "")
    return said + (f"; {bytes_text(payload.missing)} missing" if payload.missing else "")


def _problems(found: list[Problem]) -> Section:
    rows = [
        (
            one.kind.replace("_", " "),
            count_text(one.count),
            bytes_text(one.bytes),
            f"{one.first.file}:{one.first.packet}",
            one.first.error,
        )
        for one in found
    ]
    return Section("Problems", ("kind", ">count", ">bytes", "first", ""), rows)
