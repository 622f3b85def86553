"""Traffic of clients and brokers for tests of rules, and what `kafkawire diagnose` finds in it."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from kafkawire.capture import decode_capture
from kafkawire.capture.filters import parse
from kafkawire.records import BatchBuilder, Compression
from tests.capture.wire import START_NS
from tests.capture.written import Scenario
from tests.cli.reports import run

Json = dict[str, Any]
NOW_MS = START_NS // 1_000_000
"""When stories begin, as records state it."""


def batch(size: int = 100, **options: Any) -> str:
    """Return a batch of one record, as base64."""
    return batch_of([size], **options)


def batch_of(sizes: list[int], timestamp: int = NOW_MS, **options: Any) -> str:
    """Return a batch with a record of each size, as base64."""
    builder = BatchBuilder(**options)
    for size in sizes:
        builder.append(b"k", bytes(size), timestamp)
    return b64encode(builder.build()).decode()


class Story(Scenario):
    """A scenario whose exchanges are written with one call each."""

    def exchange(
        self,
        name: str,
        version: int,
        connection: int = 0,
        client_id: str = "tester",
        latency: float = 0,
        response: Json | None = None,
        **fields: Any,
    ) -> Story:
        """Send a request and its response. latency: seconds between them."""
        self.request(name, version, connection, client_id=client_id, **fields)
        self.wait(latency)
        self.respond(name, version, connection, **(response or {}))
        return self

    def produce(
        self,
        records: str | None = None,
        code: int = 0,
        acks: int = -1,
        topic: str = "orders",
        partition: int = 0,
        **options: Any,
    ) -> Story:
        """Send a batch to a partition of a topic."""
        data = [{"index": partition, "records": batch() if records is None else records}]
        result = [{"index": partition, "errorCode": code, "baseOffset": 0}]
        return self.exchange(
            "Produce",
            8,
            acks=acks,
            timeoutMs=100,
            topicData=[{"name": topic, "partitionData": data}],
            response={"responses": [{"name": topic, "partitionResponses": result}]},
            **options,
        )

    def fetch(
        self,
        records: str | None = None,
        code: int = 0,
        topic: str = "orders",
        end: int = -1,
        **options: Any,
    ) -> Story:
        """Fetch from partition 0 of a topic. end: its high watermark."""
        partition = {
            "partitionIndex": 0,
            "errorCode": code,
            "records": records,
            "highWatermark": end,
        }
        return self.exchange(
            "Fetch",
            4,
            replicaId=-1,
            maxWaitMs=500,
            minBytes=1,
            topics=[{"topic": topic, "partitions": [{"partition": 0}]}],
            response={"responses": [{"topic": topic, "partitions": [partition]}]},
            **options,
        )

    def commit(self, offset: int, code: int = 0, **options: Any) -> Story:
        """Commit an offset of partition 0 of a topic."""
        partition = {"partitionIndex": 0, "committedOffset": offset}
        result = {"partitionIndex": 0, "errorCode": code}
        return self.exchange(
            "OffsetCommit",
            7,
            groupId="billing",
            memberId="m",
            generationIdOrMemberEpoch=1,
            topics=[{"name": "orders", "partitions": [partition]}],
            response={"topics": [{"name": "orders", "partitions": [result]}]},
            **options,
        )

    def join(self, generation: int, connection: int = 0, member: str = "m") -> Story:
        """Join a group, alone."""
        self.exchange(
            "JoinGroup",
            5,
            connection,
            groupId="billing",
            memberId=member,
            protocolType="consumer",
            response={
                "generationId": generation,
                "memberId": member,
                "protocolName": "range",
                "leader": member,
                "members": [{"memberId": member}],
            },
        )
        return self.exchange(
            "SyncGroup", 3, connection, groupId="billing", memberId=member, generationId=generation
        )

    def leave(self, connection: int = 0, member: str = "m", reason: str | None = None) -> Story:
        """Leave the group."""
        members = [{"memberId": member, "reason": reason}]
        return self.exchange(
            "LeaveGroup",
            5,
            connection,
            groupId="billing",
            members=members,
            response={"members": [{"memberId": member}]},
        )


def findings(story: Scenario, folder: Path, *options: str) -> list[Json]:
    """Diagnose a story; check that each filter selects messages."""
    path = story.save(folder / "story.pcap")
    result = run("diagnose", path, "--format", "json", *options)
    assert result.exit_code in (0, 1), result.output
    reported: list[Json] = json.loads(result.stdout)["findings"]
    for one in reported:
        if one["filter"] and one["rule"] not in NOT_MESSAGES:
            assert any(True for _ in decode_capture(path, where=parse(one["filter"]))), one
    return reported


NOT_MESSAGES = {"capture-loss", "undecoded-connections"}
"""Rules whose findings are about something else than decoded messages."""


def rules(story: Scenario, folder: Path, *options: str) -> dict[str, Json]:
    """Diagnose a story; return the first finding of each rule."""
    by_rule: dict[str, Json] = {}
    for one in findings(story, folder, *options):
        by_rule.setdefault(one["rule"], one)
    return by_rule


LZ4 = Compression.LZ4
