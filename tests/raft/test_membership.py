"""Changes of voters: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kafkawire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kafkawire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kafkawire.messages.update_raft_voter_request import (
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
)
from kafkawire.messages.update_raft_voter_request import Listener as UpdatedListener
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.raft import Reply, ResponseReceived, State

from .harness import CLUSTER, Harness, endpoint, fetch, key


def add(id: int, *, cluster_id: str = CLUSTER, listeners: bool = True) -> AddRaftVoterRequest:
    one = endpoint(id)
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=id,
        voter_directory_id=key(id).directory_id,
        listeners=[Listener(name=one.name, host=one.host, port=one.port)] if listeners else [],
    )


def remove(id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=id, voter_directory_id=key(id).directory_id
    )


def update(id: int, port: int, *, most: int = 1, epoch: int = 1) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER,
        current_leader_epoch=epoch,
        voter_id=id,
        voter_directory_id=key(id).directory_id,
        listeners=[UpdatedListener(name="CONTROLLER", host="moved", port=port)],
        k_raft_version_feature=KRaftVersionFeature(max_supported_version=most),
    )


def leader(voters: int = 3, *, dynamic: bool = True, committed: bool = True) -> Harness:
    harness = Harness(voters, dynamic=dynamic)
    if voters > 1:
        harness.lead()
    if committed:
        harness.commit(*range(2, voters + 1))
    return harness


def supports(harness: Harness, most: int = 1) -> None:
    """Respond to the ApiVersions request to a new voter."""
    send, _ = harness.sent(ApiVersionsRequest)[-1]
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=most)
    response = ApiVersionsResponse(supported_features=[feature])
    harness.handle(ResponseReceived(send.correlation_id, response))


def replies(harness: Harness) -> list[int]:
    return [each.response.error_code for each in harness.of(Reply)[-1:]]  # type: ignore[attr-defined]


def ids(harness: Harness) -> list[int]:
    return [each.id for each in harness.client.voters.keys]


def test_a_voter_that_has_caught_up_is_added_and_then_counts() -> None:
    harness = leader()
    harness.request(fetch(harness, 4), 17)
    assert harness.request(add(4), 1) is None
    supports(harness)
    assert ids(harness) == [1, 2, 3, 4]
    before = harness.client.high_watermark
    harness.after(0.03)
    harness.request(fetch(harness, 2), 17)
    assert harness.client.high_watermark == before  # two of four
    effects_before = len(harness.of(Reply))
    harness.request(fetch(harness, 4), 17)
    assert harness.client.high_watermark == before + 1
    responded = harness.of(Reply)[effects_before:]
    assert [type(each.response).__name__ for each in responded] == [
        "FetchResponse",
        "AddRaftVoterResponse",
    ]
    assert replies(harness) == [ErrorCode.NONE]


def test_a_voter_that_lags_is_not_added() -> None:
    harness = leader()
    assert harness.request(add(4), 1) is None
    supports(harness)
    assert replies(harness) == [ErrorCode.REQUEST_TIMED_OUT]
    assert ids(harness) == [1, 2, 3]


def test_a_voter_without_dynamic_voters_is_not_added() -> None:
    harness = leader()
    harness.request(fetch(harness, 4), 17)
    assert harness.request(add(4), 1) is None
    supports(harness, most=0)
    assert replies(harness) == [ErrorCode.INVALID_REQUEST]


def test_a_voter_that_does_not_respond_is_not_added() -> None:
    harness = leader()
    assert harness.request(add(4), 1) is None
    harness.after(1.1)
    assert replies(harness) == [ErrorCode.REQUEST_TIMED_OUT]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add(4, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (add(2), ErrorCode.DUPLICATE_VOTER),
        (add(4, listeners=False), ErrorCode.INVALID_REQUEST),
        (remove(4), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_an_invalid_change_gets_an_error(
    request_: AddRaftVoterRequest | RemoveRaftVoterRequest, error: ErrorCode
) -> None:
    response: Any = leader().request(request_, 0)
    assert response.error_code == error
    assert response.error_message


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (Harness, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (partial(leader, dynamic=False), ErrorCode.UNSUPPORTED_VERSION),
        (partial(leader, committed=False), ErrorCode.REQUEST_TIMED_OUT),
    ],
    ids=["not the leader", "static voters", "epoch not committed"],
)
def test_the_voters_cannot_always_be_changed(make: Callable[[], Harness], error: ErrorCode) -> None:
    harness = make()
    for request in (add(4), remove(3)):
        response: Any = harness.request(request, 0)
        assert response.error_code == error


def test_one_change_at_a_time() -> None:
    harness = leader()
    assert harness.request(remove(3), 0) is None
    response: Any = harness.request(remove(2), 0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    harness.commit(2)
    assert harness.request(remove(2), 0) is None


def test_the_last_voter_stays() -> None:
    response: Any = leader(1).request(remove(1), 0)
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_a_leader_that_is_removed_leads_until_that_is_committed() -> None:
    harness = leader()
    assert harness.request(remove(1), 0) is None
    harness.after(0.03)
    harness.request(fetch(harness, 2), 17)
    assert harness.client.state.value == "Leader"  # it does not count itself
    harness.request(fetch(harness, 3), 17)
    assert harness.client.state is State.RESIGNED
    assert harness.client.is_observer


def test_a_voter_moves() -> None:
    harness = leader()
    response: Any = harness.request(update(2, 77), 0)
    assert response.error_code == ErrorCode.NONE
    assert response.current_leader.leader_id == 1
    voter = harness.client.voters.find(2)
    assert voter is not None
    assert voter.endpoints[0].port == 77
    again: Any = harness.request(update(2, 78), 0)
    assert again.error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (update(2, 77, epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (update(2, 77, most=0), ErrorCode.INVALID_REQUEST),
        (update(7, 77), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_an_invalid_move_gets_an_error(request_: UpdateRaftVoterRequest, error: ErrorCode) -> None:
    response: Any = leader().request(request_, 0)
    assert response.error_code == error
