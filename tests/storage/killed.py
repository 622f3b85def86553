"""A process that writes a log directory until it is killed; what it has done is on its output.

appended END     the batches before END were written (a kill does not lose the page cache)
flushed END      ... and are durable
truncated END    the log was cut there
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace

from kafkawire.storage.config import MAX_INT64
from kafkawire.storage.disks.files import FileDisk

from .logs import ORDERS, SMALL, TIME, batch
from .managers import started


def value(offset: int) -> bytes:
    """Return what is at an offset: the check needs no model."""
    return b"value %d" % offset


def main(root: str, seed: int) -> None:
    """Write until killed."""
    rng = random.Random(seed)
    config = replace(SMALL, file_delete_delay_ms=0, cleanup_policy=frozenset({"compact"}))
    logs = started({"a": FileDisk(root)}, config)
    log = logs.get_or_create(ORDERS, TIME)
    now_ms = TIME
    while True:
        now_ms += 1000
        kind = rng.random()
        if kind < 0.9:
            offset = log.log_end_offset
            # each key occurs once: compaction copies everything, and loses nothing
            rows = [(b"%d" % at, value(at)) for at in range(offset, offset + rng.randint(1, 5))]
            log.append(batch(offset, *rows, timestamp=now_ms), now_ms)
            print("appended", log.log_end_offset, flush=True)
        elif kind < 0.93:
            log.flush(now_ms)
            print("flushed", log.log_end_offset, flush=True)
        elif kind < 0.95:
            offset = max(0, log.log_end_offset - rng.randrange(60))
            print("truncated", offset, flush=True)
            logs.truncate(ORDERS, offset, now_ms)
            print("appended", log.log_end_offset, flush=True)
        else:
            log.update_high_watermark(MAX_INT64)
            logs.advance(now_ms)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
