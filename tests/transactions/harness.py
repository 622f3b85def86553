"""A transaction coordinator over a log in memory, in virtual time, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from kafkawire.protocol import ErrorCode
from kafkawire.records import BatchBuilder
from kafkawire.transactions import (
    AddPartitions,
    Effect,
    EndTransaction,
    InitProducerId,
    ProducerIdNeeded,
    Request,
    Result,
    Transaction,
    TransactionConfig,
    TransactionCoordinator,
    VerifyPartitions,
    WriteMarkers,
)

EPOCH_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
NEVER = 1 << 62
A, B = ("t", 0), ("u", 1)


class Log:
    """A partition of `__transaction_state`. lag: whether what is appended is not committed yet."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.high_watermark = 0
        self.lag = False
        self.fails = False

    def append(self, _index: int, builder: BatchBuilder, _now: float) -> int:
        if self.fails:
            return NEVER
        builder.base_offset = len(self.data)
        self.data.append(builder.build())
        if not self.lag:
            self.high_watermark = len(self.data)
        return len(self.data)

    def committed(self, _index: int) -> int:
        return self.high_watermark

    def batches(self, _index: int) -> Iterable[bytes]:
        return list(self.data)


class Harness:
    """A coordinator, its log, and the clock."""

    def __init__(self, config: TransactionConfig | None = None) -> None:
        self.config = config or TransactionConfig(epoch_ms=EPOCH_MS)
        self.log = Log()
        self.now = 0.0
        self.epoch = 0
        self.numbers = count(1)
        self.ids = count(100)
        self.markers: list[WriteMarkers] = []
        self.results: dict[int, Result] = {}
        self.coordinator = self._loaded()

    def _loaded(self) -> TransactionCoordinator:
        made = TransactionCoordinator(0, self.epoch, self.log, self.config, self.now)
        self.coordinator = made
        self.take(made.load())
        return made

    def fail_over(self, lose: int = 0) -> None:
        """Let another replica lead, perhaps without the last records."""
        self.take(self.coordinator.unload(ErrorCode.NOT_COORDINATOR))
        if lose:
            del self.log.data[-lose:]
        self.log.high_watermark = len(self.log.data)
        self.epoch += 1
        self.markers.clear()
        self.log.lag = False
        self._loaded()

    def take(self, effects: Iterable[Effect]) -> None:
        """Carry out effects."""
        for effect in effects:
            match effect:
                case Result():
                    self.results[effect.reply_to] = effect
                case WriteMarkers():
                    self.markers.append(effect)
                case ProducerIdNeeded():
                    again = effect.request._replace(new_producer_id=next(self.ids))
                    self.take(self.coordinator.handle(again, self.now))

    def handle(self, request: Request) -> Result | None:
        """Handle a request; return its result, if there is one."""
        self.take(self.coordinator.handle(request, self.now))
        return self.results.get(request.reply_to)

    def advance(self, seconds: float, version: int = 0) -> None:
        """Advance the time, deadline by deadline, in a cluster with a transaction.version."""
        end = self.now + seconds
        while (due := self.coordinator.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.take(self.coordinator.advance(self.now, version))
        self.now = end

    def commit_log(self) -> None:
        """Let the followers have all records."""
        self.log.high_watermark = len(self.log.data)
        self.take(self.coordinator.committed(self.log.high_watermark))

    def write_markers(self) -> None:
        """Let the leaders have written all markers."""
        while self.markers:
            self.take(self.coordinator.markers_written(self.markers.pop(0), self.now))

    @property
    def transaction(self) -> Transaction:
        """The transactional id that all requests are of."""
        return self.coordinator.transactions["x"]

    # -- requests

    def init(
        self, producer_id: int = -1, producer_epoch: int = -1, version: int = 0
    ) -> Result | None:
        """Let a producer begin."""
        request = InitProducerId(
            next(self.numbers), "x", TIMEOUT_MS, producer_id, producer_epoch, version=version
        )
        return self.handle(request)

    def add(
        self, producer: Result, *partitions: tuple[str, int], version: int = 0
    ) -> ErrorCode | None:
        """Add partitions."""
        identity = producer.producer_id, producer.producer_epoch
        request = AddPartitions(next(self.numbers), "x", *identity, frozenset(partitions), version)
        return error_of(self.handle(request))

    def verify(self, producer: Result, *partitions: tuple[str, int]) -> Result | None:
        """Verify partitions."""
        identity = producer.producer_id, producer.producer_epoch
        return self.handle(
            VerifyPartitions(next(self.numbers), "x", *identity, frozenset(partitions))
        )

    def end(self, producer: Result, commit: bool, version: int = 0) -> Result | None:
        """Commit or abort."""
        identity = producer.producer_id, producer.producer_epoch
        return self.handle(EndTransaction(next(self.numbers), "x", *identity, commit, version))

    # -- shortcuts

    def started(self) -> Result:
        """Let a producer begin that must succeed."""
        result = self.init()
        assert result is not None
        assert result.error == ErrorCode.NONE
        return result

    def ongoing(self, *partitions: tuple[str, int], version: int = 0) -> Result:
        """Let a producer begin a transaction."""
        producer = self.started()
        assert self.add(producer, *(partitions or (A, B)), version=version) == ErrorCode.NONE
        return producer


def error_of(result: Result | None) -> ErrorCode | None:
    """Return the error of a result; None before a result."""
    return None if result is None else result.error
