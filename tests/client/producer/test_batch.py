"""One batch: when it is encoded, and that this changes nothing else."""

from __future__ import annotations

import pytest
from zlib_ng import zlib_ng

from kafkawire.client.producer.batch import Batch
from kafkawire.records import Compression, RecordBatches

VALUES = [b"v%d" % i * 20 for i in range(10)]


def filled(*, early: bool) -> Batch:
    batch = Batch((1,), Compression.GZIP, 0.0, early)
    for token, value in enumerate(VALUES):
        batch.append(token, b"key", value, 1_700_000_000_000, ())
    return batch


@pytest.mark.parametrize("early", [False, True])
def test_a_batch_is_encoded_once_and_the_same_early_or_late(early: bool) -> None:
    batch, other = filled(early=early), filled(early=False)
    before = batch.size
    batch.close()
    assert batch.closed
    assert batch.size == before == other.size
    assert batch.build() == batch.build() == other.build()
    assert [each.value for each in RecordBatches(batch.build()).records()] == VALUES
    assert batch.builder.count == (0 if early else len(VALUES)), "its records are kept once"


def test_an_early_batch_can_be_split() -> None:
    batch = filled(early=True)
    batch.close()
    halves = batch.split()
    values = [each.value for half in halves for each in RecordBatches(half.build()).records()]
    assert values == VALUES
    assert [half.tokens for half in halves] == [batch.tokens[:5], batch.tokens[5:]]


def test_a_batch_that_cannot_be_encoded_fails_when_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = filled(early=True)
    monkeypatch.setattr(zlib_ng, "compressobj", cannot_compress)
    batch.close()
    with pytest.raises(ValueError, match="cannot be compressed"):
        batch.build()


def cannot_compress(*_: object) -> None:
    raise ValueError("cannot be compressed")
