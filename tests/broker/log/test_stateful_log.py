"""A partition's log against the simplest model: a list of values, a start, batches of producers.

What a broker remembers of producers is modelled as in Kafka's ProducerStateManager:

    in memory                the last five batches of each, also those that are deleted
    restarted                the last batch of each, from a snapshot at the log end
    restarted, all deleted   nothing: a snapshot at the log start is not read
    truncated                what the latest snapshot between log start and log end has, and the
                             batches after it, or from the log start on
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkawire import ErrorCode
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.records import Compression, RecordBatches
from kafkawire.storage.formats import read_snapshot
from kafkawire.storage.names import SNAPSHOT, numbered
from tests.broker.fetches import fetch_of, fetched, only
from tests.broker.harness import Harness
from tests.broker.log.test_log import batch, delete, offset_at, old, produce
from tests.fuzzing import examples

E = ErrorCode
VALUES = st.lists(st.binary(max_size=12), min_size=1, max_size=5)
PRODUCERS = st.integers(0, 2)
BROKERS = (1, 2)
MOST = 5
FOLDER = "t-0"


class Sent(NamedTuple):
    """A batch of a producer, by its first and last sequence, and its first offset."""

    first: int
    last: int
    offset: int


Remembered = dict[int, list[Sent]]
"""Producer -> its last batches."""


def last_of_each(producers: Remembered) -> Remembered:
    """Return what a snapshot has."""
    return {producer: sent[-1:] for producer, sent in producers.items()}


class LogMachine(RuleBasedStateMachine):
    """Produces, deletes, moves, truncates; reads must agree with the list."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(2)
        self.harness.create_topic("t", 1, 2, unclean_leader_election_enable="true")
        self.client = self.harness.client(self.leader)
        self.values: list[bytes] = []
        self.start = 0
        self.sent: dict[int, list[tuple[int, list[bytes]]]] = {0: [], 1: [], 2: []}
        """Producer -> its batches by their first sequences, in order."""
        self.remembered: dict[int, Remembered] = {broker: {} for broker in BROKERS}

    @property
    def leader(self) -> int:
        return self.harness.leader_of("t")

    @rule(values=VALUES, codec=st.sampled_from(Compression))
    def produces(self, values: list[bytes], codec: Compression) -> None:
        response = produce(self.client, batch(*values, compression=codec))
        assert (response.error_code, response.base_offset) == (E.NONE, len(self.values))
        self.values += values

    @rule(values=VALUES, magic=st.integers(0, 1))
    def produces_in_an_old_format(self, values: list[bytes], magic: int) -> None:
        response = produce(self.client, old(magic, *values), 2)
        assert (response.error_code, response.base_offset) == (E.NONE, len(self.values))
        self.values += values

    @rule(values=VALUES, producer=PRODUCERS)
    def produces_in_sequence(self, values: list[bytes], producer: int) -> None:
        self._accepted(producer, self._next(producer), values)

    @rule(producer=PRODUCERS, back=st.integers(1, 7))
    def sends_again(self, producer: int, back: int) -> None:
        """A batch that is remembered is a duplicate; one of an unknown producer is new."""
        sent = self.sent[producer]
        known = self.remembered[self.leader].get(producer)
        if known is None and sent:
            self._accepted(producer, *sent[-1])
        elif known is not None and back <= len(sent):
            sequence, values = sent[-back]
            wanted = sequence, sequence + len(values) - 1
            offsets = [each.offset for each in known if each[:2] == wanted]
            error, offset = self._sequenced(producer, sequence, values)
            if offsets:
                assert (error, offset) == (E.NONE, offsets[0])
            else:
                assert error == E.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(producer=PRODUCERS, ahead=st.integers(1, 9))
    def leaves_a_gap(self, producer: int, ahead: int) -> None:
        """It is an error, unless the producer is unknown: then any sequence is valid."""
        sequence = self._next(producer) + ahead
        if producer in self.remembered[self.leader]:
            error, _ = self._sequenced(producer, sequence, [b"gap"])
            assert error == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            self._accepted(producer, sequence, [b"gap"])

    def _next(self, producer: int) -> int:
        """Return the sequence after those that were sent."""
        sent = self.sent[producer]
        return sent[-1][0] + len(sent[-1][1]) if sent else 0

    def _accepted(self, producer: int, sequence: int, values: list[bytes]) -> None:
        """Send a batch that is appended, on both brokers."""
        offset = len(self.values)
        assert self._sequenced(producer, sequence, values) == (E.NONE, offset)
        for each in self.remembered.values():
            batches = each.setdefault(producer, [])
            batches.append(Sent(sequence, sequence + len(values) - 1, offset))
            del batches[:-MOST]
        if self.sent[producer][-1:] != [(sequence, values)]:
            self.sent[producer].append((sequence, values))
        self.values += values

    def _sequenced(self, producer: int, sequence: int, values: list[bytes]) -> tuple[int, int]:
        made = batch(*values, producer_id=producer, producer_epoch=0, base_sequence=sequence)
        response = produce(self.client, made)
        return response.error_code, response.base_offset

    @rule(share=st.floats(0, 1))
    def deletes(self, share: float) -> None:
        offset = int(share * len(self.values))
        self.start = max(self.start, offset)
        assert delete(self.client, offset) == (E.NONE, self.start)

    @rule()
    def move_leader(self) -> None:
        self.harness.move_leader("t", 0, 3 - self.leader)
        self._connect()

    @rule(values=VALUES, producer=PRODUCERS)
    def loses(self, values: list[bytes], producer: int) -> None:
        """An unclean leader lacks a batch, which comes again."""
        sequence, former = self._next(producer), self.leader

        def lost() -> None:
            assert self._sequenced(producer, sequence, values) == (E.NONE, len(self.values))

        self.harness.elect_uncleanly("t", 3 - former, lost)
        self._connect()
        assert self.leader == 3 - former
        self.remembered = {
            self.leader: self._after_restart(self.remembered[self.leader]),
            former: self._after_truncation(former),
        }
        self._accepted(producer, sequence, values)

    def _connect(self) -> None:
        """Connect to the leader, once all replicas are in sync."""
        self.harness.wait(lambda: len(self.harness.partition("t").isr) == 2)
        self.client = self.harness.client(self.leader)

    @rule()
    def is_restarted(self) -> None:
        """Continue in a cluster from the same disks: values, sequences and epochs are the same."""
        was = fetched(self.client, offset=self.start)
        stored = {broker: self._batches(broker) for broker in BROKERS}
        self.harness = self.harness.restored()
        self._connect()
        assert fetched(self.client, offset=self.start) == was
        self.remembered = {broker: self._after_restart(stored[broker]) for broker in BROKERS}

    def _after_restart(self, producers: Remembered) -> Remembered:
        """Return what is read of a snapshot at the log end: a crash leads to one, too."""
        return last_of_each(producers) if self.start < len(self.values) else {}

    def _after_truncation(self, broker: int) -> Remembered:
        """Return what the snapshots and batches say that a broker has."""
        (disk,) = self.harness.cluster.nodes[broker].disks.values()
        end = len(self.values)
        snapshots = [
            each.offset
            for each in map(numbered, disk.list(FOLDER))
            if each is not None and each.suffix == SNAPSHOT and self.start < each.offset <= end
        ]
        if not snapshots:
            return self._batches(broker, self.start)
        producers: Remembered = {}
        for row in read_snapshot(disk, f"{FOLDER}/{max(snapshots):020}{SNAPSHOT}"):
            first = row.last_sequence - row.offset_delta
            offset = row.last_offset - row.offset_delta
            producers[row.producer_id] = [Sent(first, row.last_sequence, offset)]
        return self._batches(broker, max(snapshots), producers)

    def _batches(
        self, broker: int, offset: int = 0, before: Remembered | None = None
    ) -> Remembered:
        """Return what the batches of a broker say from an offset on: the only segment has all."""
        (disk,) = self.harness.cluster.nodes[broker].disks.values()
        path = f"{FOLDER}/{0:020}.log"
        producers = before or {}
        for each in RecordBatches(disk.read(path, 0, disk.size(path))):
            if each.producer_id >= 0 and each.last_offset >= offset:
                sent = Sent(each.base_sequence, each.last_sequence, each.base_offset)
                producers[each.producer_id] = [*producers.get(each.producer_id, []), sent][-MOST:]
        return producers

    @rule(share=st.floats(0, 1), version=st.sampled_from([0, 2, 4, 12]))
    def reads(self, share: float, version: int) -> None:
        offset = self.start + int(share * (len(self.values) - self.start))
        request = fetch_of(self.client, version=version, offset=offset)
        if version >= 10 or not self._has_zstd(offset):
            data = only(self.client.exchange(request, version, FetchResponse))
            assert data.high_watermark == len(self.values)
            found = {r.offset: r.value for r in RecordBatches(data.records or b"").records()}
            for at in range(offset, len(self.values)):
                assert found[at] == self.values[at]

    def _has_zstd(self, offset: int) -> bool:
        whole = only(self.client.exchange(fetch_of(self.client, offset=offset), 12, FetchResponse))
        batches = RecordBatches(whole.records or b"")
        return any(each.compression is Compression.ZSTD for each in batches)

    @invariant()
    def bounds_agree(self) -> None:
        assert offset_at(self.client, -1).offset == len(self.values)
        assert offset_at(self.client, -2).offset == self.start

    @invariant()
    def producers_agree(self) -> None:
        for broker in BROKERS:
            machines = self.harness.front(broker).machines
            producers = {
                producer: [
                    Sent(each.base_sequence, each.last_sequence, each.base_offset)
                    for each in entry.batches
                ]
                for producer, entry in machines.producers(self.harness.key("t")).items()
            }
            assert producers == self.remembered[broker], broker

    @invariant()
    def epochs_only_grow(self) -> None:
        batches = list(RecordBatches(fetched(self.client, offset=self.start)))
        epochs = [each.partition_leader_epoch for each in batches]
        assert epochs == sorted(epochs)


LogMachine.TestCase.settings = settings(max_examples=examples(8), stateful_step_count=20)
TestLog = pytest.mark.fuzz(LogMachine.TestCase)
