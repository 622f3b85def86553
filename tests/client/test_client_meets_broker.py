"""What the meetings of clients and brokers would see: brokers that are broken on purpose.

Each breach is found within a few seeds, and the seed that found it plays again to the byte, up
to the same failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kafkawire.broker import Reply
from kafkawire.broker.groups.coordinator import Coordinator
from kafkawire.broker.groups.offsets import offset_record
from kafkawire.node.broker.replica_log import StoredReplicaLog
from kafkawire.node.local_cluster import LocalCluster
from kafkawire.storage import MemoryDisk, UnifiedLog

from ..conftest import ROOT
from .test_client_meets_broker_in_groups import Scenario as Group
from .test_client_meets_broker_producing import HASTE
from .test_client_meets_broker_producing import Scenario as Producing

SEEDS = 60
LOG = ".log"
METADATA = "__cluster_metadata"
Patch = pytest.MonkeyPatch
Play = Callable[[int], Any]


def produce(seed: int) -> Producing:
    return Producing(seed, {**HASTE, "linger.ms": 0})


def finish(scenario: Producing | Group) -> None:
    scenario.play()
    if isinstance(scenario, Producing):
        scenario.account(idempotent=True)
    else:
        scenario.account()


def changed(patch: Patch, change: Callable[[list[Any]], list[Any]]) -> None:
    """Let the cluster's effects be changed before anybody sees them."""
    real = LocalCluster._finish
    patch.setattr(LocalCluster, "_finish", lambda self, now: change(real(self, now)))


def twice(patch: Patch) -> None:
    changed(patch, lambda effects: [e for each in effects for e in [each] * _times(each)])


def _times(effect: object) -> int:
    return 2 if isinstance(effect, Reply) and effect.data[7] == 5 else 1


def never(patch: Patch) -> None:
    changed(patch, lambda e: [x for x in e if not (isinstance(x, Reply) and x.data[7] >= 5)])


def another(patch: Patch) -> None:
    def spoil(effect: Any) -> Any:
        if _times(effect) == 1:
            return effect
        return effect._replace(buffers=[effect.data[:7] + b"\x06" + effect.data[8:]])

    changed(patch, lambda effects: [spoil(each) for each in effects])


def promised_before_it_is_kept(patch: Patch) -> None:
    """Records stay where a power failure takes them; what the nodes agree on does not."""
    real = MemoryDisk.fsync

    def fsync(self: MemoryDisk, path: str) -> None:
        if not path.endswith(LOG) or path.startswith(METADATA):
            real(self, path)

    patch.setattr(MemoryDisk, "fsync", fsync)


def forgets_sequences(patch: Patch) -> None:
    patch.setattr(UnifiedLog, "_check_producers", lambda *_: None)


def starts_without_the_last_batch(patch: Patch) -> None:
    real = StoredReplicaLog.__init__

    def start(self: StoredReplicaLog, *arguments: Any) -> None:
        real(self, *arguments)
        if self.log_end_offset > self.log_start_offset:
            self.truncate_to(self.log_end_offset - 1)

    patch.setattr(StoredReplicaLog, "__init__", start)


def commits_something_older(patch: Patch) -> None:
    real = Coordinator.commit

    def commit(self: Coordinator, group_id: str, given: Any, now: float, records: Any) -> None:
        if len(given) > 1:
            given = {of: one._replace(offset=max(0, one.offset - 2)) for of, one in given.items()}
            records = [offset_record(group_id, *each) for each in given.items()]
        real(self, group_id, given, now, records)

    patch.setattr(Coordinator, "commit", commit)


def reads_no_offsets_again(patch: Patch) -> None:
    from kafkawire.broker.groups import loading

    patch.setattr(loading, "_load_offset", lambda *_: None)


def never_ends_a_rebalance(patch: Patch) -> None:
    from kafkawire.broker.groups.classic_groups import joining

    patch.setattr(joining, "join_due", lambda *_: [])
    patch.setattr(joining, "complete_if_all_joined", lambda *_: [])


BREACHES: list[tuple[Callable[[Patch], None], Play, str, int]] = [
    (twice, produce, "response without a request", 0),
    (never, produce, "not in progress", 0),
    (another, produce, "correlation id", 0),
    (promised_before_it_is_kept, produce, "", 0),
    (forgets_sequences, produce, "there twice", 0),
    (starts_without_the_last_batch, produce, "", 0),
    (twice, Group, "response without a request", 0),
    (commits_something_older, Group, "", 0),
    (reads_no_offsets_again, Group, "", 24),
    (never_ends_a_rebalance, Group, "", 0),
]
"""What is broken, who finds it, what the failure says, and the seed to begin with."""


def failure(play: Play, seed: int) -> tuple[str, str] | None:
    """How a seed fails, and what had happened until then; None if it does not."""
    scenario = play(seed)
    try:
        finish(scenario)
    except (AssertionError, KeyError) as error:
        return str(error), scenario.simulation.digest
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("breach", "play", "said", "first"), BREACHES, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_broken_broker_is_found_and_the_seed_plays_again(
    breach: Callable[[Patch], None], play: Play, said: str, first: int, monkeypatch: Patch
) -> None:
    assert failure(play, 0) is None
    breach(monkeypatch)
    found = ((seed, failure(play, seed)) for seed in range(first, first + SEEDS))
    seed, failed = next(each for each in found if each[1] is not None)
    assert failed is not None
    assert said in failed[0]
    assert failure(play, seed) == failed
    monkeypatch.undo()
    assert failure(play, seed) is None


PLAYED = """
from tests.client.test_client_meets_broker import Group, produce
for seed in range(5):
    for play in (Group, produce):
        story = play(seed)
        story.play()
        print(seed, story.simulation.digest, story.simulation.now)
"""


@pytest.mark.timeout(600)
def test_a_seed_plays_again_in_another_process() -> None:
    """Whatever its hashes are: KAFKAWIRE_SEED=n is the same run on any machine."""

    def played(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PLAYED]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment
        )
        return done.stdout

    first = played("1")
    assert first.count("\n") == 10
    assert played("2") == first
