"""Cuts a connection with too many bytes for one task into chunks that any task can decode.

The rows of the chunks are those of the connection. A chunk is a task of `capture.tables.tasks`,
with all that its rows depend on: open requests, and what restores fetch sessions.

    packets --one task: reassembly, framing, pairing--> LocatedItem | Ended   (bodies undecoded)
       chunk 0 | chunk 1 | chunk 2 ...                  --any task: bodies, rows of the table
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Collection, Iterator
from typing import Final

import pyarrow as pa

from ...capture.tables.passes import COLUMNAR
from ...capture.tables.tasks.making import Maker
from ...capture.tables.tasks.splitting import Splitter
from ...capture.tables.tasks.task import deserialise, serialise
from .chunk_rows import ChunkContext
from .columns import ROWS, WIDE_ROWS
from .decoding import BucketContext

CHUNKED: Final = COLUMNAR | {"messages"}
"""Tables whose rows are made of single messages or exchanges, and cost more than finding these:
`exchanges` only beside others.
"""


def cut(context: BucketContext, tables: Collection[str], size: int) -> Iterator[bytes]:
    """Cut a bucket into pickled chunks of about `size` bytes; names are recorded."""
    for task in Splitter(context, tables, sys.maxsize, size).tasks():
        if task is not None:
            serialised, frames = serialise(task, [])
            yield pickle.dumps((serialised, b"".join(frames)))


def chunk_batches(
    data: bytes, context: ChunkContext, tables: Collection[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Make the rows of a chunk."""
    size = ROWS if set(tables) <= COLUMNAR else WIDE_ROWS
    yield from Maker(context, list(tables), size).batches(deserialise(*pickle.loads(data)))
