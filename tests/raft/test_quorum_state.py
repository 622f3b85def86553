"""The file quorum-state: Kafka's own examples, and invalid ones."""

from __future__ import annotations

import json

import pytest

from kafkawire.errors import InvalidValue
from kafkawire.raft import ElectionState, ReplicaKey, read_quorum_state, write_quorum_state

DIRECTORY = bytes(range(16))
STATES = (
    ElectionState(0),
    ElectionState(3, leader_id=2),
    ElectionState(3, voted=ReplicaKey(1, DIRECTORY)),
    ElectionState(9, leader_id=1, voted=ReplicaKey(1, DIRECTORY)),
)


@pytest.mark.parametrize("state", STATES)
def test_version_1_comes_back(state: ElectionState) -> None:
    assert read_quorum_state(write_quorum_state(state)) == state


def test_version_0_has_the_static_voters_and_no_directory() -> None:
    text = write_quorum_state(STATES[3], 0, (1, 2))
    assert json.loads(text) == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 9,
        "votedId": 1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}, {"voterId": 2}],
        "data_version": 0,
    }
    assert read_quorum_state(text) == ElectionState(9, 1, ReplicaKey(1))


def test_kafkas_own_file_is_read() -> None:
    text = (
        '{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
        '"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
    )
    state = read_quorum_state(text)
    assert state.voted is not None
    assert (state.epoch, state.leader_id, state.voted.id) == (2, None, 1)
    assert json.loads(write_quorum_state(state)) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "unsupported data_version None"),
        ('{"data_version":true}', "unsupported data_version True"),
        ('{"data_version":2}', "unsupported data_version 2"),
        ('{"leaderId":"x","data_version":1}', "leaderId"),
        ('{"leader":1,"data_version":1}', "leader"),
        ('{"leaderEpoch":-4,"data_version":1}', "leader epoch -4"),
    ],
)
def test_an_invalid_file_is_named(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match="quorum-state") as raised:
        read_quorum_state(text)
    assert reason in str(raised.value)


def test_other_versions_are_not_written() -> None:
    with pytest.raises(InvalidValue, match="data_version 2"):
        write_quorum_state(STATES[0], 2)
