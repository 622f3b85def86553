"""The verbs for live clusters over a socket, against a broker that sends hostile text or bytes.

Whatever a broker responds, a verb ends in time with exit code 0 or 1, prints no control
character of the broker's, and explains a failure in one line.
"""

from __future__ import annotations

import base64
import signal
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import kafkawire
from kafkawire.client.consumer import TopicPartition
from kafkawire.client.consumer.group import requests as group_requests
from kafkawire.records import BatchBuilder, Record
from tests.cli.render.test_escaping import HOSTILE, assert_clean
from tests.cli.reports import COMMAND, run

pytestmark = pytest.mark.timeout(20)
TOPIC: Final = "orders"
SOON: Final = ("-X", "default.api.timeout.ms=400", "-X", "request.timeout.ms=300")
"""Settings with which a verb gives up soon."""
SOON_FOR_PRODUCE: Final = (
    *("-X", "max.block.ms=400", "-X", "delivery.timeout.ms=400"),
    *("-X", "request.timeout.ms=300", "-X", "linger.ms=0"),
)


GROUPS: Final = (
    (HOSTILE, "classic", "consumer"),
    (f"{HOSTILE}-consumer", "consumer", "consumer"),
    (f"{HOSTILE}-share", "share", "share"),
    (f"{HOSTILE}-streams", "streams", "streams"),
)
"""Groups that the broker lists: id, type, protocol type."""
MEMBER: Final = dict.fromkeys(("memberId", "clientId", "clientHost", "rackId"), HOSTILE)


def described(group: str, member: dict[str, Any]) -> dict[str, Any]:
    texts = dict.fromkeys(("groupState", "assignorName"), HOSTILE)
    return {"groupId": group, "groupEpoch": 1, "assignmentEpoch": 1, "members": [member], **texts}


def record_batch() -> str:
    """Build a record batch in which every text is hostile, as base64."""
    builder = BatchBuilder()
    value = HOSTILE.encode() + b"\xff"
    builder.extend([Record(0, 0, value, value, ((HOSTILE, value),))])
    return base64.b64encode(builder.build()).decode()


class Bodies(NamedTuple):
    """Response bodies, as JSON: a method per API. Every name, message and record is hostile."""

    port: int

    def ApiVersions(self, _: Any) -> dict[str, Any]:
        return {"apiKeys": [
            {"apiKey": info.api_key, "minVersion": info.first, "maxVersion": highest}
            for api, highest in SERVED.items()
            for info in [kafkawire.REGISTRY.get(f"{api}Request")]]}  # fmt: skip

    def Metadata(self, request: Any) -> dict[str, Any]:
        names = [TOPIC, HOSTILE] if request.topics is None else [t.name for t in request.topics]
        leads = {"partitionIndex": 0, "leaderId": 1, "replicaNodes": [1], "isrNodes": [1]}
        return {
            "brokers": [{"nodeId": 1, "host": "127.0.0.1", "port": self.port, "rack": HOSTILE}],
            "clusterId": HOSTILE, "controllerId": 1,
            "topics": [{"name": name, "partitions": [leads]} for name in names],
        }  # fmt: skip

    def FindCoordinator(self, request: Any) -> dict[str, Any]:
        where = {"nodeId": 1, "host": "127.0.0.1", "port": self.port, "errorMessage": HOSTILE}
        return {"coordinators": [{"key": key, **where} for key in request.coordinator_keys]}

    def ListGroups(self, _: Any) -> dict[str, Any]:
        return {"groups": [{"groupId": group, "protocolType": protocol,
                            "groupState": HOSTILE, "groupType": group_type}
                           for group, group_type, protocol in GROUPS]}  # fmt: skip

    def DescribeGroups(self, request: Any) -> dict[str, Any]:
        texts = dict.fromkeys(("memberId", "groupInstanceId", "clientId", "clientHost"), HOSTILE)
        member = texts | {"memberMetadata": "AAAA", "memberAssignment": "AAAA"}
        return {"groups": [{"groupId": group, "groupState": HOSTILE, "protocolType": "consumer",
                            "protocolData": HOSTILE, "members": [member]}
                           for group in request.groups]}  # fmt: skip

    def ConsumerGroupDescribe(self, request: Any) -> dict[str, Any]:
        assigned = {"topicPartitions": [{"topicName": HOSTILE, "partitions": [0]}]}
        member = MEMBER | {"instanceId": HOSTILE, "assignment": assigned,
                           "targetAssignment": assigned}  # fmt: skip
        return {"groups": [described(group, member) for group in request.group_ids]}

    def ShareGroupDescribe(self, request: Any) -> dict[str, Any]:
        assigned = {"topicPartitions": [{"topicName": HOSTILE, "partitions": [0]}]}
        member = MEMBER | {"assignment": assigned}
        return {"groups": [described(group, member) for group in request.group_ids]}

    def DescribeShareGroupOffsets(self, request: Any) -> dict[str, Any]:
        topics = [{"topicName": HOSTILE, "partitions": [{"startOffset": 1, "lag": 1}]}]
        return {"groups": [{"groupId": each.group_id, "topics": topics}
                           for each in request.groups]}  # fmt: skip

    def StreamsGroupDescribe(self, request: Any) -> dict[str, Any]:
        tasks = [{"subtopologyId": HOSTILE, "partitions": [0]}]
        has = {"activeTasks": tasks, "standbyTasks": tasks, "warmupTasks": tasks}
        member = MEMBER | {"instanceId": HOSTILE, "processId": HOSTILE, "assignment": has,
                           "targetAssignment": has}  # fmt: skip
        internal = {"name": HOSTILE, "topicConfigs": [{"key": HOSTILE, "value": HOSTILE}]}
        part = {"subtopologyId": HOSTILE, "sourceTopics": [HOSTILE],
                "repartitionSinkTopics": [HOSTILE], "stateChangelogTopics": [internal],
                "repartitionSourceTopics": [internal]}  # fmt: skip
        topology = {"topology": {"epoch": 1, "subtopologies": [part]}}
        return {"groups": [described(group, member) | topology for group in request.group_ids]}

    def OffsetFetch(self, request: Any) -> dict[str, Any]:
        committed = {"partitionIndex": 0, "committedOffset": 1, "metadata": HOSTILE}
        topics = [{"name": HOSTILE, "partitions": [committed]}]
        return {"groups": [{"groupId": each.group_id, "topics": topics} for each in request.groups]}

    def ListOffsets(self, request: Any) -> dict[str, Any]:
        ends = {-1: 1, -2: 0}
        return {"topics": [
            {"name": topic.name, "partitions": [
                {"partitionIndex": each.partition_index, "offset": ends.get(each.timestamp, 0)}
                for each in topic.partitions]}
            for topic in request.topics]}  # fmt: skip

    def Fetch(self, request: Any) -> dict[str, Any]:
        return {"responses": [
            {"topic": topic.topic, "partitions": [
                {"partitionIndex": each.partition, "highWatermark": 1, "lastStableOffset": 1,
                 "records": record_batch() if each.fetch_offset == 0 else ""}
                for each in topic.partitions]}
            for topic in request.topics]}  # fmt: skip

    def Produce(self, request: Any) -> dict[str, Any]:
        errors = [{"batchIndex": 0, "batchIndexErrorMessage": HOSTILE}]
        failed = {"index": 0, "errorCode": 87, "errorMessage": HOSTILE, "recordErrors": errors,
                  "baseOffset": -1}  # fmt: skip
        topics = [{"name": each.name, "partitionResponses": [failed]}
                  for each in request.topic_data]  # fmt: skip
        return {"responses": topics}

    def InitProducerId(self, _: Any) -> dict[str, Any]:
        return {"producerId": 1, "producerEpoch": 0}

    def CreateTopics(self, request: Any) -> dict[str, Any]:
        return {"topics": [{"name": each.name, "errorCode": 42, "errorMessage": HOSTILE}
                           for each in request.topics]}  # fmt: skip

    def DeleteTopics(self, request: Any) -> dict[str, Any]:
        return {"responses": [{"name": each.name, "errorCode": 42, "errorMessage": HOSTILE}
                              for each in request.topics]}  # fmt: skip

    def DeleteGroups(self, request: Any) -> dict[str, Any]:
        return {"results": [{"groupId": each, "errorCode": 68} for each in request.groups_names]}

    def DescribeCluster(self, _: Any) -> dict[str, Any]:
        here = {"brokerId": 1, "host": HOSTILE, "port": self.port, "rack": HOSTILE}
        return {"clusterId": HOSTILE, "brokers": [here]}

    def DescribeQuorum(self, _: Any) -> dict[str, Any]:
        row = {"leaderId": 1, "currentVoters": [{"replicaId": 1, "logEndOffset": 1}]}
        return {"topics": [{"topicName": HOSTILE, "partitions": [row]}]}

    def DescribeLogDirs(self, _: Any) -> dict[str, Any]:
        held = {"name": HOSTILE, "partitions": [{"partitionSize": 1}]}
        return {"results": [{"logDir": HOSTILE, "topics": [held]}]}

    def DescribeConfigs(self, request: Any) -> dict[str, Any]:
        config = {"name": "min.insync.replicas", "value": HOSTILE}
        return {"results": [{"resourceName": each.resource_name, "configs": [config]}
                            for each in request.resources]}  # fmt: skip


SERVED: Final = {
    "ApiVersions": 4, "Metadata": 9, "FindCoordinator": 4, "ListGroups": 5, "DescribeGroups": 5,
    "OffsetFetch": 8, "ListOffsets": 7, "Fetch": 12, "Produce": 9, "InitProducerId": 4,
    "CreateTopics": 5, "DeleteTopics": 6, "DeleteGroups": 2, "DescribeCluster": 2,
    "DescribeQuorum": 2, "DescribeLogDirs": 5, "DescribeConfigs": 4,
    "ConsumerGroupDescribe": 1, "ShareGroupDescribe": 1, "DescribeShareGroupOffsets": 1,
    "StreamsGroupDescribe": 1,
}  # fmt: skip
"""The highest version of each API that the broker serves."""


def respond(frame: kafkawire.Frame, bodies: Bodies) -> bytes:
    """Build the frame of a response."""
    api = type(frame.body).__name__.removesuffix("Request")
    message = kafkawire.from_json(
        f"{api}Response", frame.api_version, getattr(bodies, api)(frame.body)
    )
    return kafkawire.encode_frame(message, frame.api_version, frame.header.correlation_id)


Damage = Callable[[bytes], bytes]
"""What is sent in place of a well-formed response; nothing closes the connection."""


@contextmanager
def hostile_broker(
    damaged: str = "", damage: Damage = bytes, bodies_of: Callable[[int], Bodies] = Bodies
) -> Iterator[str]:
    """Serve hostile responses on the loopback interface; yield host:port.

    damaged: the API whose responses pass through `damage`. bodies_of: makes the responses of a
    broker on a port.
    """

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            bodies = bodies_of(self.connection.getsockname()[1])
            while size := self.rfile.read(4):
                frame = kafkawire.decode_frame(size + self.rfile.read(int.from_bytes(size)))
                data = respond(frame, bodies)
                if type(frame.body).__name__ == f"{damaged}Request":
                    data = damage(data)
                if not data:
                    return
                self.wfile.write(data)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that closed its connection."""

    with Server(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("one\n")
    return path


# -- hostile text


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with hostile_broker() as address:
        yield address


@pytest.mark.parametrize(
    "words",
    [
        ("topics",),
        ("topics", "--format", "json"),
        ("topics", "--topic", HOSTILE),
        ("topics", "--topic", TOPIC, "--format", "json"),
        ("groups",),
        ("groups", "--format", "json"),
        *(("groups", "--group", group) for group, *_ in GROUPS),
        *(("groups", "--group", group, "--format", "json") for group, *_ in GROUPS),
        ("cluster",),
        ("cluster", "--format", "json"),
        ("consume", TOPIC, "-e"),
        ("consume", TOPIC, "-n", "1", "--format", "json"),
        ("consume", HOSTILE, "-n", "1"),
    ],
)
def test_text_of_a_broker_is_escaped(bootstrap: str, words: tuple[str, ...]) -> None:
    result = run(*words, "-b", bootstrap)
    assert result.exit_code == 0, result.output
    assert_clean(result.stdout, result.stderr)
    assert "owned" in result.stdout or TOPIC in words


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "--create", TOPIC),
        ("topics", "--delete", TOPIC, "--yes"),
        ("groups", "--delete", HOSTILE, "--yes"),
        ("groups", "--group", f"{HOSTILE}x"),
    ],
)
def test_errors_of_a_broker_are_escaped(bootstrap: str, words: tuple[str, ...]) -> None:
    result = run(*words, "-b", bootstrap)
    assert result.exit_code == 1, result.output
    assert len(result.stderr.splitlines()) == 1
    assert "owned" in result.stderr or TOPIC in words
    assert_clean(result.stdout, result.stderr)


def test_errors_of_records_are_escaped(bootstrap: str, lines: Path) -> None:
    result = run("produce", TOPIC, "-i", lines, "-b", bootstrap, "-v")
    assert result.exit_code == 1, result.output
    assert "owned" in result.stderr
    assert_clean(result.stdout, result.stderr)


# -- hostile bytes


def after_header(data: bytes) -> bytes:
    """Replace a body by escape sequences."""
    return data[:9] + b"\x1b]0;owned\x07" * ((len(data) - 9) // 10 + 1)


DAMAGES: Final[dict[str, Damage]] = {
    "closed": lambda _: b"",
    "truncated": lambda data: len(data[4:-1]).to_bytes(4) + data[4:-1],
    "garbage": lambda data: len(after_header(data)[4:]).to_bytes(4) + after_header(data)[4:],
    "negative size": lambda data: b"\xff\xff\xff\xf0" + data[4:],
    "huge size": lambda data: b"\x7f\xff\xff\xf0" + data[4:],
    "empty": lambda _: bytes(4),
    "another correlation id": lambda data: data[:4] + b"\x1b[31" + data[8:],
    "not Kafka": lambda _: b"HTTP/1.1 400 Bad Request\r\n\x1b[31m\r\n\r\n",
}
VERBS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("topics", "--topic", TOPIC): ("ApiVersions", "Metadata", "ListOffsets"),
    ("cluster",): ("Metadata",),
    ("groups", "--group", HOSTILE): (
        "ListGroups", "FindCoordinator", "DescribeGroups", "OffsetFetch",
    ),
    ("groups", "--group", f"{HOSTILE}-consumer"): ("ConsumerGroupDescribe",),
    ("groups", "--group", f"{HOSTILE}-share"): (
        "ShareGroupDescribe", "DescribeShareGroupOffsets",
    ),
    ("groups", "--group", f"{HOSTILE}-streams"): ("StreamsGroupDescribe",),
    ("consume", TOPIC, "-e"): ("Fetch",),
    ("produce", TOPIC, "-i"): ("Produce",),
}  # fmt: skip
"""Verbs, and the APIs whose responses are damaged."""


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("words", "api"), [(words, api) for words, apis in VERBS.items() for api in apis]
)
def test_bytes_of_a_broker(words: tuple[str, ...], api: str, damage: str, lines: Path) -> None:
    produces = words[0] == "produce"
    with hostile_broker(api, DAMAGES[damage]) as address:
        more = (lines, *SOON_FOR_PRODUCE) if produces else SOON
        result = run(*words, *more, "-b", address)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1, result.output
    *reconnects, last = result.stderr.splitlines()
    if words[0] == "consume":  # each reason once
        assert 1 <= len(reconnects) <= 3, result.stderr
        assert all(line.endswith("; reconnecting") for line in reconnects), result.stderr
    else:
        assert len(reconnects) == produces, result.stderr
    assert last.startswith("0 delivered" if produces else f"kafkawire {words[0]}: "), last
    assert_clean(result.stdout, result.stderr)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("api", "what"), [("DescribeQuorum", "quorum: "), ("DescribeLogDirs", "log directories: ")]
)
def test_a_cluster_without_a_part_that_is_damaged(api: str, what: str, damage: str) -> None:
    with hostile_broker(api, DAMAGES[damage]) as address:
        result = run("cluster", address, *SOON)
    assert result.exit_code == 0, result.output
    assert any(line.strip().startswith(what) for line in result.stdout.splitlines())
    assert_clean(result.stdout, result.stderr)


# -- well-formed responses that lead nowhere


class NamelessTopic(Bodies):
    """A broker whose topics have no names, as Metadata may say from version 12 on."""

    def ApiVersions(self, request: Any) -> dict[str, Any]:
        keys = super().ApiVersions(request)["apiKeys"]
        return {"apiKeys": [each | ({"maxVersion": 12} if each["apiKey"] == 3 else {})
                            for each in keys]}  # fmt: skip

    def Metadata(self, request: Any) -> dict[str, Any]:
        body = super().Metadata(request)
        return body | {"topics": [topic | {"name": None} for topic in body["topics"]]}


class MissingTopic(Bodies):
    """A broker that describes no topic."""

    def Metadata(self, request: Any) -> dict[str, Any]:
        return super().Metadata(request) | {"topics": []}


class MissingOffsets(Bodies):
    """A broker that looks up nothing."""

    def ListOffsets(self, _: Any) -> dict[str, Any]:
        return {"topics": []}


class MissingGroup(Bodies):
    """A broker that describes no group."""

    def DescribeGroups(self, _: Any) -> dict[str, Any]:
        return {"groups": []}


@pytest.mark.parametrize(
    ("bodies_of", "words"),
    [
        (NamelessTopic, ("consume", TOPIC, "-e")),
        (MissingTopic, ("consume", TOPIC, "-e")),
        (NamelessTopic, ("topics", "--topic", TOPIC)),
        (MissingTopic, ("topics", "--topic", TOPIC)),
        (MissingOffsets, ("topics", "--topic", TOPIC)),
        (MissingGroup, ("groups", "--group", HOSTILE)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_responses_without_what_was_requested(
    bodies_of: type[Bodies], words: tuple[str, ...]
) -> None:
    with hostile_broker(bodies_of=bodies_of) as address:
        result = run(*words, "-b", address, *SOON)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1, result.output
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert_clean(result.stdout, result.stderr)


class FailingFetch(Bodies):
    """A broker that fails each fetch of a partition, with an error that may pass."""

    def Fetch(self, request: Any) -> dict[str, Any]:
        rows = super().Fetch(request)["responses"]
        for row in rows:
            for each in row["partitions"]:
                each |= {"errorCode": -1, "records": ""}
        return {"responses": rows}


class IncompleteBatches(Bodies):
    """A broker whose record batches are never complete."""

    def Fetch(self, request: Any) -> dict[str, Any]:
        rows = super().Fetch(request)["responses"]
        for row in rows:
            for each in row["partitions"]:
                whole = base64.b64decode(record_batch())
                each["records"] = base64.b64encode(whole[:-1]).decode()
        return {"responses": rows}


class EmptyFetch(Bodies):
    """A broker that responds at once, and without records, though it has some."""

    def Fetch(self, request: Any) -> dict[str, Any]:
        rows = super().Fetch(request)["responses"]
        for row in rows:
            for each in row["partitions"]:
                each["records"] = ""
        return {"responses": rows}


class EndlessRebalance(Bodies):
    """A coordinator in whose group a rebalance follows each rebalance."""

    def JoinGroup(self, _: Any) -> dict[str, Any]:
        return {"memberId": "me", "leader": "other", "protocolName": "range", "generationId": 1}

    def SyncGroup(self, _: Any) -> dict[str, Any]:
        return {"errorCode": 27, "assignment": ""}

    def LeaveGroup(self, _: Any) -> dict[str, Any]:
        return {"members": []}


SERVED.update({"JoinGroup": 5, "SyncGroup": 3, "LeaveGroup": 4, "Heartbeat": 3, "OffsetCommit": 7})


@pytest.mark.parametrize(
    ("bodies_of", "group"),
    [
        (FailingFetch, ()),
        (IncompleteBatches, ()),
        (EmptyFetch, ()),
        (EndlessRebalance, ("--group", "g")),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_consume_to_the_end_ends_without_progress(
    bodies_of: type[Bodies], group: tuple[str, ...]
) -> None:
    with hostile_broker(bodies_of=bodies_of) as address:
        result = run("consume", TOPIC, "-e", *group, "-b", address, *SOON)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1, result.output
    *warnings, last = result.stderr.splitlines()
    assert all(each.endswith("; retrying") for each in warnings), result.stderr
    assert last.startswith("kafkawire consume: "), last
    assert_clean(result.stdout, result.stderr)


class Silent(Bodies):
    """A broker that takes records, commits and farewells, and responds nothing."""

    def JoinGroup(self, _: Any) -> dict[str, Any]:
        return {"memberId": "me", "leader": "other", "protocolName": "range", "generationId": 1}

    def SyncGroup(self, _: Any) -> dict[str, Any]:
        assignment = group_requests.assignment([TopicPartition(TOPIC, 0)])
        return {"assignment": base64.b64encode(assignment).decode()}

    def OffsetFetch(self, request: Any) -> dict[str, Any]:
        row = {"partitionIndex": 0, "committedOffset": 0}
        topics = [{"name": TOPIC, "partitions": [row]}]
        return {"groups": [{"groupId": each.group_id, "topics": topics} for each in request.groups]}

    def OffsetCommit(self, _: Any) -> dict[str, Any]:
        threading.Event().wait(60)
        return {"topics": []}

    LeaveGroup = OffsetCommit

    def Produce(self, request: Any) -> dict[str, Any]:
        threading.Event().wait(60)
        return super().Produce(request)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_does_not_wait_for_a_silent_coordinator(number: signal.Signals) -> None:
    """The limit of this test is shorter than the time that closing in order may take."""
    with hostile_broker(bodies_of=Silent) as address:
        words = [*COMMAND, "consume", TOPIC, "--group", "g", "-f", "value", "-b", address]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdout=pipe, stderr=pipe) as running:
            assert running.stdout is not None
            assert running.stdout.readline()
            running.send_signal(number)
            assert running.wait() == 0


def test_an_interrupted_produce_reports_what_is_not_delivered() -> None:
    """The limit of this test is shorter than delivery.timeout.ms."""
    pipe = subprocess.PIPE
    produced = threading.Event()

    class Taken(Silent):
        def Produce(self, request: Any) -> dict[str, Any]:
            produced.set()
            return super().Produce(request)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with hostile_broker(bodies_of=Taken) as address:
            words = [*COMMAND, "produce", TOPIC, "-b", address]
            with subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
            ) as running:
                assert running.stdin is not None
                assert running.stderr is not None
                running.stdin.write(b"one\n")
                produced.wait()
                running.send_signal(signal.SIGINT)
                assert running.wait() == 130
                assert running.stderr.read().splitlines()[-1] == b"0 delivered, 1 failed"
    finally:
        signal.signal(signal.SIGINT, before)
