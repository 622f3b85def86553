"""What a crash leaves is recovered: seeds of the simulation, and rules whose absence it finds.

`make soak` runs more seeds; KAFKAWIRE_SEED=7 replays one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from kafkawire.storage import directory_logs
from kafkawire.storage.cleanup import cleaner
from kafkawire.storage.directory_logs import DirectoryLogs
from kafkawire.storage.disks.log_directory import LogDirectory
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.epochs import LeaderEpochFileCache
from kafkawire.storage.loader import LogLoader
from kafkawire.storage.moves import Move
from kafkawire.storage.producer_state import ProducerStateManager
from kafkawire.storage.segment import LogSegment
from kafkawire.storage.segment_files.indexes import OffsetIndex, TimeIndex, TransactionIndex
from kafkawire.storage.segments import remove
from kafkawire.storage.unified_log import UnifiedLog
from tests.fuzzing import SOAK, seeds

from .moving import MovingSimulation
from .simulation import Simulation, crashes


@pytest.mark.fuzz
def test_crashes() -> None:
    assert crashes(seeds(16)) >= 10


@pytest.mark.fuzz
def test_crashes_while_logs_are_moved() -> None:
    assert crashes(seeds(12), MovingSimulation) >= 10


@pytest.mark.parametrize("kind", [Simulation, MovingSimulation])
def test_a_seed_replays(kind: Callable[[int], Simulation]) -> None:
    traces = []
    for _ in range(2):
        simulation = kind(3)
        simulation.run()
        traces.append(simulation.trace)
    assert traces[0] == traces[1]
    assert len(set(traces[0])) > 30


class Mutant(NamedTuple):
    """A rule that is left out: an attribute and what takes its place.

    seed: the first that is tried, one that finds it.
    """

    owner: Any
    name: str
    instead: Callable[..., Any]
    seed: int = 0


def nothing(*_arguments: Any, **_options: Any) -> None:
    """Do nothing."""


def without(owner: Any, name: str, call: str, target: Any) -> Callable[..., Any]:
    """Return a method during which another one does nothing."""
    original = getattr(owner, name)
    skipped = getattr(target, call)

    def method(*arguments: Any, **options: Any) -> Any:
        setattr(target, call, nothing)
        try:
            return original(*arguments, **options)
        finally:
            setattr(target, call, skipped)

    return method


def flush_before_the_end(self: UnifiedLog, now_ms: int, up_to: int | None = None) -> None:
    """Advance the recovery point without a flush."""
    self.recovery_point = self.log_end_offset if up_to is None else up_to
    self.last_flush_ms = now_ms


def roll_before_the_flush(self: UnifiedLog, now_ms: int, offset: int = 0) -> LogSegment:
    active = self.segments.active
    base = max(offset, self.log_end_offset)
    active.seal()
    new = LogSegment.create(self.disk, self.folder, base, self.config, now_ms)
    self.disk.fsync_directory(self.folder)
    self.flush(now_ms)
    self.segments.add(new)
    self.producers.map_end_offset = base
    self.producers.take_snapshot()
    return new


def replace_without_swap(
    log: UnifiedLog, new: LogSegment, old: list[LogSegment], now_ms: int
) -> None:
    for segment in old:
        remove(log.disk, segment, log.deletions, now_ms)
        log.segments.discard(segment)
    for path in new.paths():
        log.disk.rename(path, path.removesuffix(".cleaned"))
    placed = LogSegment(log.disk, log.folder, new.base_offset, log.config, new.created_ms)
    log.segments.add(placed)


MUTANTS: Final = {
    "flush does not reach the disk": Mutant(UnifiedLog, "flush", flush_before_the_end),
    "a segment begins before the last is durable": Mutant(
        UnifiedLog, "roll", roll_before_the_flush, 35
    ),
    "names are not durable": Mutant(MemoryDisk, "fsync_directory", nothing),
    "no recovery after a crash": Mutant(LogLoader, "_recover", lambda *_: 0),
    "a truncation is not durable": Mutant(
        UnifiedLog, "truncate", without(UnifiedLog, "truncate", "flush", LogSegment), 2
    ),
    "offset index not truncated": Mutant(OffsetIndex, "truncate", nothing),
    "time index not truncated": Mutant(TimeIndex, "truncate", nothing),
    "transaction index not truncated": Mutant(TransactionIndex, "truncate", nothing),
    "epochs not truncated": Mutant(LeaderEpochFileCache, "truncate_from_end", nothing),
    "the largest timestamp is not indexed": Mutant(LogSegment, "seal", nothing),
    "snapshots outlive a truncation": Mutant(ProducerStateManager, "delete_outside", nothing, 6),
    "no producer snapshots": Mutant(ProducerStateManager, "take_snapshot", nothing, 7),
    "compaction without swap files": Mutant(cleaner, "replace_segments", replace_without_swap),
    "swap files are not finished": Mutant(LogLoader, "_replace_by", nothing, 74),
    "compaction is not durable": Mutant(
        cleaner, "_clean_group", without(cleaner, "_clean_group", "flush", LogSegment)
    ),
}


def swap_without_a_flush(self: Move, now_ms: int) -> UnifiedLog:
    """Promote a future log that is not durable."""
    skipped = UnifiedLog.flush, LogSegment.flush
    UnifiedLog.flush = flush_before_the_end  # type: ignore[method-assign]
    LogSegment.flush = nothing  # type: ignore[method-assign]
    try:
        return SWAP(self, now_ms)
    finally:
        UnifiedLog.flush, LogSegment.flush = skipped  # type: ignore[method-assign]


SWAP: Final = Move.swap
MUTANTS_OF_MOVES: Final = {
    "a log is promoted before it is durable": Mutant(Move, "swap", swap_without_a_flush),
    "its new name is not durable": Mutant(
        DirectoryLogs, "promote", without(DirectoryLogs, "promote", "fsync_directory", LogDirectory)
    ),
    "the copies have no generations": Mutant(directory_logs, "write_move_generation", nothing),
    "a copy that failed is valid": Mutant(DirectoryLogs, "write_generation", nothing, 310),
    "the future log is not truncated": Mutant(Move, "reconcile", nothing),
    "epochs are not copied": Mutant(Move, "_copy_epochs", nothing, 43),
    "the log start offset is not copied": Mutant(Move, "_copy_start", nothing),
    "producers are those of the batches": Mutant(ProducerStateManager, "adopt", nothing, 120),
}


@pytest.mark.parametrize("mutated", MUTANTS_OF_MOVES.values(), ids=MUTANTS_OF_MOVES, indirect=True)
def test_a_missing_rule_of_moves_is_found(mutated: Mutant) -> None:
    find(mutated, MovingSimulation)


@pytest.fixture
def mutated(request: pytest.FixtureRequest) -> Iterator[Mutant]:
    mutant: Mutant = request.param
    original = getattr(mutant.owner, mutant.name)
    setattr(mutant.owner, mutant.name, mutant.instead)
    yield mutant
    setattr(mutant.owner, mutant.name, original)


@pytest.mark.parametrize("mutated", MUTANTS.values(), ids=MUTANTS, indirect=True)
def test_a_missing_rule_is_found(mutated: Mutant) -> None:
    find(mutated, Simulation)


def find(mutant: Mutant, kind: Callable[[int], Simulation]) -> None:
    """Run seeds until one fails."""
    for seed in range(mutant.seed, mutant.seed + 20 * SOAK):
        try:
            kind(seed).run()
        except Exception:  # noqa: BLE001 - any failure finds the mutant
            return
    raise AssertionError("no seed finds it")
