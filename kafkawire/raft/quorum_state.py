"""Reads and writes Kafka's file `quorum-state`: what a replica must not forget of elections.

Text in and out. Version 0 names the static voters, version 1 (KIP-853) the directory voted
for.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from ..errors import DecodeError, InvalidValue
from ..messages.quorum_state_data import QuorumStateData, Voter
from ..primitives import ZERO_UUID
from ..protocol.json_form import from_json, to_json
from .voters import ReplicaKey

DATA_VERSION: Final = "data_version"
VERSIONS: Final = (0, 1)
NO_NODE: Final = -1


class ElectionState(NamedTuple):
    """The epoch, its leader if known, and the replica voted for."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


def write_quorum_state(state: ElectionState, version: int = 1, voters: tuple[int, ...] = ()) -> str:
    """Write the file. voters: ids for version 0."""
    if version not in VERSIONS:
        raise InvalidValue(f"unsupported {DATA_VERSION} {version}")
    voted = state.voted or ReplicaKey(NO_NODE)
    message = QuorumStateData(
        leader_id=NO_NODE if state.leader_id is None else state.leader_id,
        leader_epoch=state.epoch,
        voted_id=voted.id,
        voted_directory_id=voted.directory_id if version else ZERO_UUID,
        current_voters=[] if version else [Voter(voter_id=each) for each in voters],
    )
    fields = to_json(message, version)
    assert isinstance(fields, dict)
    return json.dumps({**fields, DATA_VERSION: version}, separators=(",", ":"))


def read_quorum_state(text: str) -> ElectionState:
    """Read the file; InvalidValue if it is not a valid one."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"quorum-state: invalid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidValue("quorum-state: not a JSON object")
    version = fields.pop(DATA_VERSION, None)
    if version not in VERSIONS or isinstance(version, bool):
        raise InvalidValue(f"quorum-state: unsupported {DATA_VERSION} {version!r}")
    try:
        message = from_json("QuorumStateData", version, fields)
    except (DecodeError, InvalidValue, ValueError) as error:
        raise InvalidValue(f"quorum-state: {error}") from None
    assert isinstance(message, QuorumStateData)
    if message.leader_epoch < 0:
        raise InvalidValue(f"quorum-state: leader epoch {message.leader_epoch}")
    return ElectionState(
        message.leader_epoch,
        None if message.leader_id < 0 else message.leader_id,
        None if message.voted_id < 0 else ReplicaKey(message.voted_id, message.voted_directory_id),
    )
