"""Captures that arrive: rotated files become rows as they are finished, each message once.

Law: the union of the batches is what one reading of all files would say.

    with Watcher(spark, output, tables, options) as watcher:     files into batches
        watcher.take(files)        or stream.writeStream.foreachBatch(watcher.take_frame)
    watch(spark, directory, output, tables, options, ...)        a directory, until told to end
"""

from .arrivals import Finished
from .ledger import WatchError
from .options import Rules, parse_rules
from .watcher import Mode, Watcher, told_to_end, watch

__all__ = [
    "Finished",
    "Mode",
    "Rules",
    "WatchError",
    "Watcher",
    "parse_rules",
    "told_to_end",
    "watch",
]
