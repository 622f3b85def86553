"""Quotas of time, of changes of topics and of connections: a real Apache Kafka and our node."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kafkawire import REGISTRY, ApiKey, Message, encode_frame
from kafkawire.broker.apis import client_apis
from kafkawire.broker.releases import LATEST
from kafkawire.messages import alter_client_quotas_request as quotas
from kafkawire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from kafkawire.node.front.apis import controller_apis
from tests.interop.implementations import until

from ...real.broker import Broker, free_ports
from ...real.own_node import serving
from ...real.requests import Known, filled
from ...real.wire import HOST, RESPONSE_SECONDS, Wire

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
NUMBERS = count()
RATE: Final = 2.0
SPENT: Final = 24
"""Partitions that leave a bucket of 11 windows at -2 tokens: 1 second to wait."""
THROTTLED_MS: Final = 1000
MS: Final = 600
"""By how much throttle times may differ: tokens come in while a busy machine is at work."""
TINY: Final = 0.0001
"""A share of request time that any request exceeds, in percent."""
SERVED_S: Final = 3.0
"""More than the window after which a throttled connection is closed."""


@pytest.fixture(scope="module")
def both(own_kafka: Broker) -> Iterator[tuple[int, int]]:
    """The ports of the real broker and of a node of ours."""
    with ClusterThread(ServerConfig()) as cluster:
        yield own_kafka.port, cluster.ports()[1]


def new_name(prefix: str) -> str:
    return f"{prefix}-{next(NUMBERS)}"


def set_quota(wire: Wire, entity: dict[str, str | None], key: str, value: float | None) -> None:
    """Set or remove a quota."""
    parts = [quotas.EntityData(entity_type=name, entity_name=of) for name, of in entity.items()]
    op = quotas.OpData(key=key, value=value or 0.0, remove=value is None)
    request = quotas.AlterClientQuotasRequest(entries=[quotas.EntryData(entity=parts, ops=[op])])
    response = wire.exchange(request, 1, AlterClientQuotasResponse)
    assert response.entries[0].error_code == 0


class Ports(NamedTuple):
    """The ports of a node."""

    broker: int
    controller: int


class Result(NamedTuple):
    """The response to a change of topics, and whether the connection is not served meanwhile."""

    errors: list[int]
    throttle_ms: int
    is_muted: bool


def creation(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name, partitions in topics
        ],
        timeout_ms=30_000,
        validate_only=validate_only,
    )


def growth(topic: str, partitions: int) -> CreatePartitionsRequest:
    grown = CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
    return CreatePartitionsRequest(topics=[grown], timeout_ms=30_000)


def deletion(topic: str, version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=30_000)


RESPONSES: Final[dict[type[Message], tuple[Any, str]]] = {
    CreateTopicsRequest: (CreateTopicsResponse, "topics"),
    CreatePartitionsRequest: (CreatePartitionsResponse, "results"),
    DeleteTopicsRequest: (DeleteTopicsResponse, "responses"),
}


def changed(wire: Wire, request: Message, version: int) -> Result:
    """Change topics; wait for the response to the request after it."""
    response_type, results = RESPONSES[type(request)]
    begin = time.monotonic()
    response = wire.exchange(request, version, response_type)
    throttle_ms = response.throttle_time_ms
    wire.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
    elapsed_ms = (time.monotonic() - begin) * 1000
    errors = [each.error_code for each in getattr(response, results)]
    return Result(errors, throttle_ms, throttle_ms > 0 and elapsed_ms >= throttle_ms)


@pytest.fixture(scope="module")
def limited(both: tuple[int, int]) -> tuple[int, int]:
    """Both, with a quota of changes that each client id has for itself."""
    for port in both:
        with Wire(port) as wire:
            set_quota(wire, {"client-id": None}, "controller_mutation_rate", RATE)

        def is_applied(port: int = port) -> bool:
            with Wire(port, client_id=new_name("probe")) as wire:
                return changed(wire, creation((new_name("probe"), SPENT)), 5).throttle_ms > 0

        until(is_applied)
    return both


Case = Callable[[str], Message]
CASES: Final[dict[str, tuple[Case, int]]] = {
    "CreateTopics 5": (lambda _: creation((new_name("created"), SPENT)), 5),
    "CreateTopics 6": (lambda _: creation((new_name("created"), SPENT)), 6),
    "CreateTopics 7": (lambda _: creation((new_name("created"), SPENT)), 7),
    "CreateTopics 7, two": (
        lambda _: creation((new_name("created"), SPENT), (new_name("created"), 1)),
        7,
    ),
    "CreateTopics 5, validated": (
        lambda _: creation((new_name("created"), SPENT), validate_only=True),
        5,
    ),
    "CreateTopics 7, validated": (
        lambda _: creation((new_name("created"), SPENT), validate_only=True),
        7,
    ),
    "CreateTopics 7, existing": (lambda topic: creation((topic, SPENT)), 7),
    "CreatePartitions 2": (lambda topic: growth(topic, 1 + SPENT), 2),
    "CreatePartitions 3": (lambda topic: growth(topic, 1 + SPENT), 3),
    "CreatePartitions 3, fewer": (lambda topic: growth(topic, 1), 3),
    "DeleteTopics 4": (lambda topic: deletion(topic, 4), 4),
    "DeleteTopics 5": (lambda topic: deletion(topic, 5), 5),
    "DeleteTopics 6": (lambda topic: deletion(topic, 6), 6),
    "DeleteTopics 6, absent": (lambda _: deletion("never-created", 6), 6),
}


@pytest.mark.parametrize("spent", [0, SPENT], ids=["fresh", "exceeded"])
@pytest.mark.parametrize("name", CASES)
def test_changes_of_topics(limited: tuple[int, int], name: str, spent: int) -> None:
    case, version = CASES[name]
    topic, created = new_name("topic"), new_name("spent")
    client_id = new_name("client")
    results = []
    for port in limited:
        with Wire(port, client_id=f"{client_id}-before") as wire:
            assert changed(wire, creation((topic, 1)), 7).errors == [0]
        with Wire(port, client_id=client_id) as wire:
            if spent:
                response = wire.exchange(creation((created, spent)), 7, CreateTopicsResponse)
                assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)
            results.append(changed(wire, case(topic), version))
    real, ours = results
    assert (ours.errors, ours.is_muted) == (real.errors, real.is_muted)
    assert abs(ours.throttle_ms - real.throttle_ms) <= MS, results


UNSENT: Final = {
    ApiKey.PRODUCE,  # acks=0 has no response
    ApiKey.FETCH,
    ApiKey.SHARE_FETCH,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
}
REQUESTS: Final = sorted(
    {
        (key, version)
        for key, versions in client_apis(LATEST).listed.items()
        if key not in UNSENT
        for version in (versions.first, versions.last)
    }
)


def test_request_time(both: tuple[int, int]) -> None:
    """Each API, in its first and last version: what the response has for the throttle time."""
    of_both = []
    for port in both:
        with Wire(port) as wire:
            set_quota(wire, {"user": None, "client-id": None}, "request_percentage", TINY)

        def is_applied(port: int = port) -> bool:
            with Wire(port) as wire:
                response = wire.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
                return response.throttle_time_ms == THROTTLED_MS

        until(is_applied)
        throttle_ms: dict[tuple[str, int], int | None] = {}
        for key, version in REQUESTS:
            info = REGISTRY.request(key)
            assert info is not None
            with Wire(port, client_id=new_name("timed")) as wire:
                try:
                    response = wire.send(filled(info.name, version, Known("absent")), version)
                except ConnectionError:
                    continue
            throttle_ms[key.name, version] = getattr(response.frame.body, "throttle_time_ms", None)
        of_both.append(throttle_ms)
        with Wire(port) as wire:
            set_quota(wire, {"user": None, "client-id": None}, "request_percentage", None)
    real, ours = of_both
    differing = {
        case: (real.get(case), ours.get(case))
        for case in real | ours
        if real.get(case) != ours.get(case)
    }
    assert differing == {}
    assert list(real.values()).count(THROTTLED_MS) > 50


@pytest.fixture(scope="module")
def controllers(own_kafka: Broker) -> Iterator[tuple[Ports, Ports]]:
    """The ports of the real node and of one of ours."""
    with ClusterThread(ServerConfig()) as cluster:
        yield (
            Ports(own_kafka.port, own_kafka.controller_port),
            Ports(cluster.ports()[1], cluster.ports("CONTROLLER")[1]),
        )


ATTEMPTS: Final = 3


def throttled_by_controller(ports: Ports, client_id: str) -> dict[str, object]:
    """Each API of a client whose share is used up: the throttle time, and whether more waits."""
    with Wire(ports.broker) as wire:
        set_quota(wire, {"client-id": client_id}, "request_percentage", TINY)
    until(lambda: controller_throttles(ports.controller, client_id))
    results: dict[str, object] = {}
    for key, versions in sorted(controller_apis(LATEST).listed.items()):
        info = REGISTRY.request(key)
        assert info is not None
        for _ in range(ATTEMPTS):
            with Wire(ports.controller, client_id=client_id) as wire:
                request = filled(info.name, versions.last, Known("absent"))
                response = wire.send(request, versions.last)
                throttle_ms = getattr(response.frame.body, "throttle_time_ms", None)
                is_muted = waits(wire)
            results[key.name] = throttle_ms, is_muted
            if is_muted == bool(throttle_ms):
                break  # else it may be a busy machine for which the next response waited
    return results


def controller_throttles(port: int, client_id: str) -> bool:
    with Wire(port, client_id=client_id) as wire:
        response = wire.exchange(ApiVersionsRequest(), 3, ApiVersionsResponse)
        return response.throttle_time_ms == THROTTLED_MS


def waits(wire: Wire) -> bool:
    """Whether the response to the next request takes some time."""
    begin = time.monotonic()
    with suppress(ConnectionError):
        wire.send(ApiVersionsRequest(), 0)
    return time.monotonic() - begin >= THROTTLED_MS / 2000


def test_request_time_of_controllers(controllers: tuple[Ports, Ports]) -> None:
    client_id = new_name("timed")
    real, ours = (throttled_by_controller(each, client_id) for each in controllers)
    differing = {key: (real[key], ours[key]) for key in real if real[key] != ours[key]}
    assert differing == {}
    assert list(real.values()).count((THROTTLED_MS, True)) > 20


def served(port: int, number: int) -> int:
    """Open connections; return how many of them get a response; the others are closed."""
    with ExitStack() as stack:
        wires = []
        for _ in range(number):
            try:
                wires.append(stack.enter_context(Wire(port, seconds=SERVED_S)))
            except ConnectionError:  # closed before it was accepted
                continue
        responses = 0
        for wire in wires:
            try:
                wire.exchange(MetadataRequest(topics=[]), 9, MetadataResponse)
            except ConnectionError:
                continue
            responses += 1
        return responses


def test_connections_of_an_address(both: tuple[int, int]) -> None:
    """An override applies before `max.connections.per.ip`."""
    for port in both:
        with Wire(port) as wire:
            alter(wire, {"max.connections.per.ip": "9", OVERRIDES: f"{HOST}:5,10.0.0.1:1"})
            until(lambda port=port: served(port, 8) == 4)  # type: ignore[misc]
            alter(wire, {OVERRIDES: "10.0.0.1:1"})
            until(lambda port=port: served(port, 12) == 8)  # type: ignore[misc]
            alter(wire, {"max.connections.per.ip": None, OVERRIDES: None})
            until(lambda port=port: served(port, 12) == 12)  # type: ignore[misc]


OVERRIDES: Final = "max.connections.per.ip.overrides"


def alter(wire: Wire, values: dict[str, str | None]) -> None:
    """Set or delete configs of all brokers."""
    configs = [
        AlterableConfig(name=name, config_operation=value is None, value=value)
        for name, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = wire.exchange(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0


def test_connections_per_second(both: tuple[int, int]) -> None:
    """10 connections are within 10 of 11 windows; those beyond are closed, without a response."""
    for port in both:
        with Wire(port) as wire:
            set_quota(wire, {"ip": HOST}, "connection_creation_rate", 1.0)
            until(lambda port=port: served(port, 40) < 30)  # type: ignore[misc]
            with socket.create_connection((HOST, port), timeout=SERVED_S) as throttled:
                assert throttled.recv(1) == b""
            set_quota(wire, {"ip": HOST}, "connection_creation_rate", None)
            until(lambda port=port: served(port, 40) == 40)  # type: ignore[misc]


class NodePorts(NamedTuple):
    """The ports of a node that is a broker and a controller."""

    broker: int
    controller: int


@pytest.fixture
def nodes(own_kafka: Broker, tmp_path: Path) -> Iterator[tuple[NodePorts, NodePorts]]:
    """The ports of the real node and of ours."""
    ports = NodePorts(*free_ports(2))
    controllers = f"1@{HOST}:{ports.controller}"
    with serving(tmp_path / "data", ports.broker, controllers, {}, ["--node-id", "1"]):
        yield NodePorts(own_kafka.port, own_kafka.controller_port), ports


def accepted(address: str, *ports: int) -> int:
    """Connect from an address; return on how many connections there is a response, not the end."""
    with ExitStack() as stack:
        clients = []
        for port in ports:
            client = socket.create_connection((HOST, port), RESPONSE_SECONDS, (address, 0))
            clients.append(stack.enter_context(client))
            with suppress(ConnectionError):  # closed already
                client.sendall(encode_frame(ApiVersionsRequest(), 0, 1, client_id=None))
        return sum(map(is_responded, clients))


def is_responded(client: socket.socket) -> bool:
    try:
        return client.recv(1) != b""
    except ConnectionResetError:
        return False


def test_connections_to_a_controller(nodes: tuple[NodePorts, NodePorts]) -> None:
    """Those to both listeners of a node are counted together, each address by itself."""
    for ports in nodes:
        many = [ports.controller] * 24
        with Wire(ports.broker) as operator:
            set_quota(operator, {"ip": "127.0.0.2"}, "connection_creation_rate", 100.0)
            set_quota(operator, {"ip": None}, "connection_creation_rate", 1.0)
            until(lambda many=many: accepted("127.0.0.3", *many) < 16)  # type: ignore[misc]
            assert accepted("127.0.0.2", *many) == 24
            both = [ports.controller] * 12 + [ports.broker] * 12
            assert 10 <= accepted("127.0.0.4", *both) < 16
            set_quota(operator, {"ip": "127.0.0.2"}, "connection_creation_rate", None)
            set_quota(operator, {"ip": None}, "connection_creation_rate", None)
            until(lambda many=many: accepted("127.0.0.5", *many) == 24)  # type: ignore[misc]
