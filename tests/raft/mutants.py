"""Rules of the quorum, each broken: a mutant is found when some seed violates an invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from kafkawire.messages.vote_response import VoteResponse
from kafkawire.raft import (
    Committed,
    MemoryLog,
    OffsetAndEpoch,
    PersistQuorumState,
    State,
    following,
    leading,
    quorum,
    reading,
    voting,
)
from kafkawire.raft import client as client_module
from kafkawire.raft.config import NEVER
from kafkawire.raft.control_batches import fetched_batches
from kafkawire.raft.quorum import Quorum
from kafkawire.raft.quorum_state import write_quorum_state
from kafkawire.raft.requests import RequestManager
from kafkawire.raft.states import Cause, ReplicaProgress

Mutant = Callable[[], AbstractContextManager[Any]]


def _replace(target: Any, name: str, value: Any) -> Mutant:
    return lambda: patch.object(target, name, value)


def _vote_again(self: Quorum, _candidate: Any, up_to_date: bool) -> bool:
    return self.state is State.UNATTACHED and self.leader_id is None and up_to_date


def _forget_vote(state: Any, version: int = 1, voters: tuple[int, ...] = ()) -> str:
    return write_quorum_state(state._replace(voted=None), version, voters)


def _forget_epoch(state: Any, version: int = 1, voters: tuple[int, ...] = ()) -> str:
    return write_quorum_state(state._replace(epoch=0, voted=None, leader_id=None), version, voters)


def _append_unflushed(self: Quorum, records: bytes, _leader_id: int, _now: float) -> None:
    batches, _ = fetched_batches(records, self.log.end, self.epoch)
    if batches:
        self.append(batches)


def _most(self: Quorum, leadership: Any) -> int:
    return max(leading.end_offset(leadership, key) for key in self.voters.keys)


def _one_too_few(self: Quorum, leadership: Any) -> int:
    offsets = sorted(
        (leading.end_offset(leadership, key) for key in self.voters.keys), reverse=True
    )
    return offsets[max(self.voters.majority - 2, 0)]


_append = leading._append


def _count_unflushed(self: Quorum, batch: bytes, now: float) -> int:
    last = _append(self, batch, now)
    assert self.leadership is not None
    progress = self.leadership.progress.setdefault(self.config.replica, ReplicaProgress())
    progress.end_offset = self.log.end.offset
    leading.advance_high_watermark(self, now)
    return last


def _to_their_offset(log: MemoryLog, diverging: OffsetAndEpoch) -> int:
    return min(diverging.offset, log.end.offset)


def _commit_any(self: Quorum, offset: int) -> bool:
    self.high_watermark = offset
    self.effects.append(Committed(offset))
    return True


def _count_pre_vote_at_once(self: Quorum, cause: Cause, now: float) -> None:
    _become_prospective(self, cause, now)
    self.election.granted.update(key.id for key in self.voters.keys)
    voting.check_won(self, now)


_become_prospective = Quorum.become_prospective


def _forget_leadership(self: Quorum, text: str | None, now: float) -> None:
    _start(self, text, now)
    if self.state is State.RESIGNED:  # goes on as if it still led
        self.state = State.CANDIDATE
        self.election.granted = {key.id for key in self.voters.keys}
        voting.check_won(self, now)


_start = Quorum.start
_finish = client_module.KafkaRaftClient._finish


def _persist_last(self: Any, now: float) -> list[Any]:
    effects = _finish(self, now)
    return sorted(effects, key=lambda each: isinstance(each, PersistQuorumState))


def _always_valid(*_: Any) -> None:
    return None


@contextmanager
def _no_reset() -> Iterator[None]:
    """Count any granted vote, of whichever epoch and state it is."""

    def count_any(self: Quorum, responded: Any, sent: Any, now: float) -> None:
        if responded.partition is not None and self.state in (State.PROSPECTIVE, State.CANDIDATE):
            voting.count(self, sent.node.id, responded.partition.vote_granted, now)

    responses = {**client_module.RESPONSES, VoteResponse: count_any}
    with (
        patch.object(RequestManager, "reset", lambda _: None),
        patch.object(client_module, "RESPONSES", responses),
    ):
        yield


MUTANTS: Final[dict[str, Mutant]] = {
    "votes twice in an epoch": _replace(voting, "can_grant_vote", _vote_again),
    "votes for a shorter log": _replace(voting, "is_up_to_date", lambda *_: True),
    "does not persist its vote": _replace(quorum, "write_quorum_state", _forget_vote),
    "does not persist its epoch": _replace(quorum, "write_quorum_state", _forget_epoch),
    "persists after it responds": _replace(client_module.KafkaRaftClient, "_finish", _persist_last),
    "commits what one voter has": _replace(leading, "majority_offset", _most),
    "commits what one voter too few has": _replace(leading, "majority_offset", _one_too_few),
    "counts what it has not flushed": _replace(leading, "_append", _count_unflushed),
    "fetches on without a flush": _replace(following, "append_fetched", _append_unflushed),
    "does not truncate": _replace(following, "_truncate", lambda *_: None),
    "truncates to the leader's offset": _replace(following, "truncation_offset", _to_their_offset),
    "does not compare epochs of logs": _replace(reading, "validate", _always_valid),
    "high watermark goes back": _replace(Quorum, "commit", _commit_any),
    "stands without pre-votes": _replace(Quorum, "become_prospective", _count_pre_vote_at_once),
    "counts votes of earlier states": _no_reset,
    "leads on without a majority": _replace(leading, "check_quorum_deadline", lambda _: NEVER),
    "leads its epoch again after a restart": _replace(Quorum, "start", _forget_leadership),
    "leads on after its removal": _replace(leading, "is_removed", lambda _: False),
}
"""The mutants by what they do wrong."""
