"""Decodes captures as they arrive: finished files become rows, each message once.

The union of the batches is what one reading of all files gives.

    with Watcher(spark, output, tables, options) as watcher:     files into batches
        watcher.take(files)        or stream.writeStream.foreachBatch(watcher.take_frame)
    watch(spark, directory, output, tables, options, ...)        a directory, until SIGTERM
"""

from .arrivals import Finished
from .commit_log import WatchError
from .options import WatchOptions, parse_watch_options
from .watcher import Mode, Watcher, check_request, sigterm_event, watch

__all__ = [
    "Finished",
    "Mode",
    "WatchOptions",
    "WatchError",
    "Watcher",
    "check_request",
    "parse_watch_options",
    "sigterm_event",
    "watch",
]
