"""The calls of the sweep: `calls.txt`, a line each: tool, options, `<` before what it reads.

`@name` is the path of a file of `FILES`. Scenarios have topics and groups of their own; within
one, a call depends on those before it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

TOOLS: Final = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-share-consumer": "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-e2e-latency": "EndToEndLatency",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-reassign-partitions": "reassign.ReassignPartitionsCommand",
    "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-streams-application-reset": "StreamsResetter",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-verifiable-producer": "VerifiableProducer",
    "kafka-verifiable-share-consumer": "VerifiableShareConsumer",
}
"""Tool -> class in `org.apache.kafka.tools`. Left out: kafka-dump-log reads files
(tests/log/test_dump_tool.py), kafka-storage formats them, and
kafka-replica-verification runs until it is stopped."""
PACKAGE: Final = "org.apache.kafka.tools"
BOOTSTRAP_LAST: Final = frozenset({"kafka-cluster"})
"""Their subcommand comes first."""

FILES: Final = {
    "delete.json": """{"version": 1, "partitions": [
        {"topic": "records", "partition": 0, "offset": 2},
        {"topic": "keyed", "partition": 0, "offset": 9999}]}""",
    "not.json": "{",
    "elect.json": '{"partitions": [{"topic": "elected", "partition": 1}]}',
    "move.json": '{"version": 1, "topics": [{"topic": "moved"}]}',
    "moves.json": """{"version": 1, "partitions": [
        {"topic": "moved", "partition": 0, "replicas": [0], "log_dirs": ["any"]},
        {"topic": "moved", "partition": 1, "replicas": [0]}]}""",
    "away.json": '{"version":1,"partitions":[{"topic":"moved","partition":0,"replicas":[7]}]}',
    "offsets.csv": "reset,0,1\nreset,1,0\n",
    "topic.properties": "retention.ms=1234\ncleanup.policy=compact\n",
}

TABLE: Final = Path(__file__).with_name("calls.txt")


def scenarios() -> dict[str, list[str]]:
    """Return the lines of each scenario, by its name."""
    lines: dict[str, list[str]] = {}
    for line in filter(None, TABLE.read_text(encoding="utf-8").splitlines()):
        if line.startswith("["):
            lines[line.strip("[]")] = []
        else:
            [*lines.values()][-1].append(line)
    return lines


class Call(NamedTuple):
    """A call of a tool. name: its line in the table, with its scenario."""

    name: str
    tool: str
    arguments: tuple[str, ...]
    stdin: str

    @property
    def main(self) -> str:
        """The class."""
        return f"{PACKAGE}.{TOOLS[self.tool]}"

    def at(self, bootstrap: str) -> tuple[str, ...]:
        """Return the arguments with the bootstrap servers, where the tool takes them."""
        where = ("--bootstrap-server", bootstrap)
        last = self.tool in BOOTSTRAP_LAST
        return (*self.arguments, *where) if last else (*where, *self.arguments)


def calls(scenario: str, lines: Iterable[str]) -> Iterator[Call]:
    """Yield the calls of a scenario. A line that is there again gets a number."""
    count: Counter[str] = Counter()
    for line in lines:
        count[line] += 1
        again = f" ({count[line]})" if count[line] > 1 else ""
        command, _, stdin = line.partition(" < ")
        tool, *arguments = shlex.split(command)
        text = stdin.encode().decode("unicode_escape")
        yield Call(f"{scenario}: {line}{again}", tool, tuple(arguments), text)
