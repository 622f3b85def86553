"""The record batches that a Produce request has for a partition."""

from __future__ import annotations

from typing import NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey
from kafkawire.records import Batch


class Produced(NamedTuple):
    """The batches of a partition in a Produce request. size: bytes of all of them."""

    exchange: Exchange
    topic: TopicKey
    partition: int
    acks: int
    batches: list[Batch]
    size: int
