"""Our broker passes every check, in each release and composition; faults make checks fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkawire import ApiKey, Frame, Message
from kafkawire.blocking import Admin
from kafkawire.capture import decode_capture
from kafkawire.conformance.behaviour import Behaviour
from kafkawire.conformance.behaviours import ALL
from kafkawire.conformance.connection import Connection
from kafkawire.conformance.run import Outcome
from kafkawire.net.server_thread import ServerThread

from .checks import PREFIX, checked, config, problems

pytestmark = pytest.mark.timeout(120)

APIS = sorted({each.api for each in ALL} - {ApiKey.API_VERSIONS})


@pytest.mark.parametrize("fields", [{}, {"release": "2.8"}, {"release": "3.9", "brokers": 3}])
def test_every_check_passes(fields: dict[str, Any]) -> None:
    with ServerThread(config(**fields)) as server:
        results = checked(server.bootstrap)
        assert not problems(results)
        with Admin({"bootstrap.servers": server.bootstrap}) as admin:
            assert not [each for each in admin.list_topics() if each.startswith(PREFIX)]
    passed = {each.behaviour.name for each in results if each.outcome is Outcome.PASSED}
    assert len(passed) > 0.75 * len(ALL)


def test_a_release_without_an_api_is_not_checked_for_it() -> None:
    with ServerThread(config(release="2.8")) as server:
        results = checked(server.bootstrap, of(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.LIST_GROUPS))
    outcomes = {each.behaviour.api: each.outcome for each in results}
    assert outcomes == {
        ApiKey.CONSUMER_GROUP_HEARTBEAT: Outcome.NOT_OFFERED,
        ApiKey.LIST_GROUPS: Outcome.PASSED,
    }


def of(*apis: ApiKey) -> list[Behaviour]:
    return [each for each in ALL if each.api in apis]


@pytest.mark.parametrize("api", APIS, ids=lambda one: one.name)
def test_an_error_fails_every_check_of_its_api(api: ApiKey) -> None:
    with ServerThread(config()) as server:
        server.fault(api)
        results = checked(server.bootstrap, of(api))
    assert {each.outcome for each in results} == {Outcome.FAILED}
    assert all(each.exchanges for each in results)


def replaced(path: str, value: object) -> Callable[[Any], None]:
    """Set a field of responses that have it; path: such as `topics.0.name`."""
    *steps, last = path.split(".")

    def change(message: Any) -> None:
        for each in steps:
            if each.isdigit() and not message:
                return
            message = message[int(each)] if each.isdigit() else getattr(message, each)
        setattr(message, last, value)

    return change


MUTATIONS = {
    "lists its APIs": replaced("api_keys", []),
    "lists its brokers and topics with their leaders": replaced("brokers", []),
    "has an id and brokers": replaced("cluster_id", ""),
    "finds coordinators among its brokers": replaced("coordinators.0.port", 1),
    "describes only the keys that are wanted": replaced("results.0.configs", []),
    "counts offsets up, acks=all": replaced("responses.0.partition_responses.0.base_offset", 7),
    "says the time of a topic with LogAppendTime": replaced(
        "responses.0.partition_responses.0.log_append_time_ms", -1
    ),
    "returns the records that were produced": replaced("responses.0.partitions.0.records", b""),
    "waits for records": replaced("responses.0.partitions.0.records", b""),
    "returns only what is new in a session": replaced("session_id", 0),
    "lists the ends of a partition": replaced("topics.0.partitions.0.offset", 9),
    "lists the first record that is not older than a timestamp": replaced(
        "topics.0.partitions.0.offset", 9
    ),
    "deletes the records before an offset": replaced("topics.0.partitions.0.low_watermark", 0),
    "makes the first member the leader": replaced("leader", "another"),
    "gives the members the assignment of the leader": replaced("assignment", b""),
    "returns committed offsets, and -1 where there is none": replaced(
        "groups.0.topics.0.partitions.0.committed_offset", 3
    ),
    "gives each producer an id of its own": replaced("producer_id", 5),
    "gives a transactional id a new epoch each time": replaced("producer_epoch", 0),
    "returns a new epoch": replaced("producer_epoch", 0),
    "fences other epochs, and refuses other members": replaced("error_code", 0),
    "assigns the tasks to the only member": replaced("active_tasks.0.partitions", [7]),
    "fences members of other epochs, and other ids": replaced("error_code", 0),
    "names the missing source topics": replaced("status", []),
    "describes a Streams group with its topology and members": replaced("groups.0.topology", None),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_another_response_fails_the_check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [behaviour] = [each for each in ALL if each.name == name]
    whole = Connection.decoded
    begun: list[bool] = []

    def mutated(self: Connection, data: bytes, api: ApiKey, version: int) -> Frame:
        frame = whole(self, data, api, version)
        if api is behaviour.api and (begun or api is not ApiKey.API_VERSIONS):
            body: Message = frame.body
            MUTATIONS[name](body)
        begun.append(True)
        return frame

    monkeypatch.setattr(Connection, "decoded", mutated)
    with ServerThread(config()) as server:
        results = checked(server.bootstrap, [behaviour])
    assert results[-1].outcome is Outcome.FAILED, results[-1]


@pytest.mark.parametrize(
    ("api", "path", "value"),
    [
        (ApiKey.METADATA, "brokers", []),
        (ApiKey.METADATA, "topics", []),
        (ApiKey.METADATA, "topics.0.partitions", []),
        (ApiKey.METADATA, "topics.0.partitions.0.leader_id", 99),
        (ApiKey.METADATA, "brokers.0.port", 1 << 20),
        (ApiKey.FIND_COORDINATOR, "port", 1 << 20),
        (ApiKey.FIND_COORDINATOR, "host", "x" * 100),
        (ApiKey.FIND_COORDINATOR, "host", "\0"),
    ],
)
def test_nonsense_fails_checks_and_ends_none(
    api: ApiKey, path: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Connection.decoded

    def mutated(self: Connection, data: bytes, decoded_api: ApiKey, version: int) -> Frame:
        frame = whole(self, data, decoded_api, version)
        if decoded_api is api:
            replaced(path, value)(frame.body)
        return frame

    monkeypatch.setattr(Connection, "decoded", mutated)
    behaviours = of(ApiKey.PRODUCE, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH)
    with ServerThread(config()) as server:
        results = checked(server.bootstrap, behaviours, timeout_s=1.0)
    assert {each.behaviour.name for each in results} == {each.name for each in behaviours}
    assert Outcome.FAILED in {each.outcome for each in results}


@pytest.mark.parametrize("action", ["truncate", "disconnect", "drop"])
def test_a_broken_response_is_a_failure(action: str, tmp_path: Path) -> None:
    with ServerThread(config()) as server:
        server.fault(ApiKey.LIST_GROUPS, action=action)
        [*results] = checked(server.bootstrap, of(ApiKey.LIST_GROUPS), tmp_path, timeout_s=0.5)
    assert {each.outcome for each in results} == {Outcome.FAILED}
    for each in results:
        assert each.capture is not None
        assert each.capture.exists()


def test_the_packets_of_a_failure_are_kept(tmp_path: Path) -> None:
    with ServerThread(config()) as server:
        server.fault(ApiKey.LIST_GROUPS)
        results = checked(server.bootstrap, of(ApiKey.LIST_GROUPS, ApiKey.METADATA), tmp_path)
    failed = [each for each in results if each.outcome is Outcome.FAILED]
    assert {each.capture for each in failed} == set(tmp_path.iterdir())
    for each in failed:
        assert each.capture is not None
        rows = [one.row for one in decode_capture(each.capture)]
        assert ApiKey.LIST_GROUPS in {one.api_key for one in rows if one.is_message}
