"""Reads as a member of a share group, and writes records out: `kafkawire consume --share`.

Records are accepted once they have been written out; what is not is released, and delivered again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..notes import print_note
from .outputs import RecordOutput, in_thread
from .reader import ConnectionLog

if TYPE_CHECKING:
    from kafkawire.client.consumer import TopicPartition
    from kafkawire.client.share_consumer import AcknowledgeFailed, AcknowledgementRange
    from kafkawire.net.share_consumer import ShareConsumer


async def read_shared(consumer: ShareConsumer, output: RecordOutput, most: int | None) -> None:
    """Write records out and accept them. most: stop after so many; None for no limit."""
    consumer.set_acknowledgement_callback(_report)
    left = most
    with ConnectionLog() as log:
        while left != 0:
            records = await consumer.poll(max_records=left)
            log.reset()
            await in_thread(output.write, records)
            await consumer.commit()
            if left is not None:
                left -= len(records)


def _report(
    _partition: TopicPartition,
    _ranges: tuple[AcknowledgementRange, ...],
    error: AcknowledgeFailed | None,
) -> None:
    """Say that records were written out, but may be delivered again."""
    if error is not None:
        print_note(f"{error}; its records may be delivered again")
