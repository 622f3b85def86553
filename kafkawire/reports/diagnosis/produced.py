"""The record batches that a Produce request has for a partition, and the keys of their records."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.rows import Row
from kafkawire.records import Batch

from .finding import Subject


class Produced(NamedTuple):
    """The batches of a partition in a Produce request.

    row: of the request. subject: the client and the topic; client, topic: each of them alone.
    records, size: number of records and bytes of all batches.
    """

    exchange: Exchange
    row: Row
    subject: Subject
    client: Subject
    topic: Subject
    partition: int
    acks: int
    batches: list[Batch]
    records: int
    size: int


class Keys(NamedTuple):
    """The keys of a batch, which was chosen by chance.

    counts: records by key, None for those without one. weight: how many batches it stands for.
    size: bytes of the batch.
    """

    produced: Produced
    counts: Counter[bytes | None]
    weight: int
    size: int
