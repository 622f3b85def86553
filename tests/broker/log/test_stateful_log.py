"""A partition's log against the simplest model: a list of values, a start, a set of sequences."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkawire import ErrorCode
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.records import Compression, RecordBatches
from kafkawire.storage.producer_entry import ProducerStateEntry
from tests.broker.fetches import fetch_of, fetched, only
from tests.broker.harness import Harness
from tests.broker.log.test_log import batch, delete, offset_at, old, produce
from tests.fuzzing import examples

E = ErrorCode
VALUES = st.lists(st.binary(max_size=12), min_size=1, max_size=5)
PRODUCERS = st.integers(0, 2)


class LogMachine(RuleBasedStateMachine):
    """Produces, deletes, moves, truncates; reads must agree with the list."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(2)
        self.harness.create_topic("t", 1, 2, unclean_leader_election_enable="true")
        self.client = self.harness.client(self.leader)
        self.values: list[bytes] = []
        self.start = 0
        self.sent: dict[int, list[tuple[int, list[bytes], int]]] = {0: [], 1: [], 2: []}
        self.forgotten: set[int] = set()
        """Producers that a restart may have forgotten: their records are deleted."""

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
        sent = self.sent[producer]
        sequence = sent[-1][0] + len(sent[-1][1]) if sent else 0
        response = self._sequenced(producer, sequence, values)
        assert response == (E.NONE, len(self.values))
        self._was_appended(producer, sequence, values)

    def _was_appended(self, producer: int, sequence: int, values: list[bytes]) -> None:
        self.sent[producer].append((sequence, values, len(self.values)))
        self.forgotten.discard(producer)
        self.values += values

    @rule(producer=PRODUCERS, back=st.integers(1, 5))
    def sends_again(self, producer: int, back: int) -> None:
        sent = self.sent[producer]
        if back <= len(sent) and producer not in self.forgotten:
            sequence, values, offset = sent[-back]
            assert self._sequenced(producer, sequence, values) == (E.NONE, offset)

    @rule(producer=PRODUCERS, ahead=st.integers(1, 9))
    def leaves_a_gap(self, producer: int, ahead: int) -> None:
        sent = self.sent[producer]
        if sent and producer not in self.forgotten:
            sequence = sent[-1][0] + len(sent[-1][1]) + ahead
            error, _ = self._sequenced(producer, sequence, [b"gap"])
            assert error == E.OUT_OF_ORDER_SEQUENCE_NUMBER

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
        sent = self.sent[producer]
        sequence = sent[-1][0] + len(sent[-1][1]) if sent else 0

        def lost() -> None:
            assert self._sequenced(producer, sequence, values) == (E.NONE, len(self.values))

        self.harness.elect_uncleanly("t", 3 - self.leader, lost)
        self._connect()
        self._forget()
        assert self._sequenced(producer, sequence, values) == (E.NONE, len(self.values))
        self._was_appended(producer, sequence, values)

    def _connect(self) -> None:
        """Connect to the leader, once all replicas are in sync."""
        self.harness.wait(lambda: len(self.harness.partition("t").isr) == 2)
        self.client = self.harness.client(self.leader)

    @rule()
    def is_restarted(self) -> None:
        """Continue in a cluster from the same disks: values, sequences and epochs are the same."""
        was = self._stored()
        self.harness = self.harness.restored()
        self._connect()
        assert self._stored() == was
        self._forget()

    def _forget(self) -> None:
        """Only send last batches again: a snapshot, which may have been read, has no others.

        As Kafka does, a start reads no snapshot of before the log start offset.
        """
        self.sent = {producer: sent[-1:] for producer, sent in self.sent.items()}
        for producer, sent in self.sent.items():
            if sent and sent[-1][2] + len(sent[-1][1]) <= self.start:
                self.forgotten.add(producer)

    def _stored(self) -> tuple[bytes, dict[int, ProducerStateEntry]]:
        """What the log of the leader has, and what it knows of producers."""
        front = self.harness.front(self.leader)
        producers = {}
        for each, entry in front.machines.producers(self.harness.key("t")).items():
            # a snapshot has the last batch of each; one whose records are deleted is forgotten
            last = list(entry.batches)[-1:]
            if last and last[0].last_offset >= self.start:
                producers[each] = replace(entry, batches=deque(last, entry.batches.maxlen))
        return fetched(self.client, offset=self.start), producers

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
    def epochs_only_grow(self) -> None:
        batches = list(RecordBatches(fetched(self.client, offset=self.start)))
        epochs = [each.partition_leader_epoch for each in batches]
        assert epochs == sorted(epochs)


LogMachine.TestCase.settings = settings(max_examples=examples(8), stateful_step_count=20)
TestLog = pytest.mark.fuzz(LogMachine.TestCase)
