"""Collects records fields and their batches as columns: one row per field, one row per batch.

Of a corrupt batch the records before the error are read, and no others are lost. Memory is
that of RUN_BYTES, whatever the batches decompress to: records are handed on before a batch ends.

    Fields: where each field was found      Runs: Columns of records, and for each batch its field,
                                                  its number of records and its header values
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pickle import PickleBuffer
from typing import Final, final

from librt.strings import (
    BytesWriter,
    read_i32_le,
    read_i64_le,
    write_i16_le,
    write_i32_le,
    write_i64_le,
)
from mypy_extensions import i16, i32, i64

from ....errors import WireError
from ....records.batch import Batch
from ....records.batches import RecordBatches
from ....records.column_reading import ColumnReader
from ....records.columns import Columns
from ....records.compression.codecs import CODEC_NAMES
from ....records.limits import Budget
from ...exchanges.topic_ids import Topic
from ...files.blocks import NO_TIME
from ..extraction.record_batches import RecordsField
from .buffers import Numbers

RUN_BYTES: Final = 1 << 24
"""Bytes that some records take in memory, decompressed and as rows, before they are handed on."""

ROW_BYTES: Final = 256
"""Bytes of a row besides its texts, key, value and headers, about."""


@final
class Fields:
    """Records fields and where they were found, one value per column and field."""

    def __init__(self) -> None:
        self.fields: list[RecordsField] = []
        self.bytes: i64 = 0
        self.file: list[str | None] = []
        self.packet: Numbers = Numbers()
        self.time_ns: Numbers = Numbers()
        self.connection: Numbers = Numbers()
        self.client: list[str | None] = []
        self.broker: list[str | None] = []
        self.direction: list[str | None] = []
        self.client_id: list[str | None] = []
        self.correlation_id: Numbers = Numbers()
        self.topic: list[Topic] = []
        self.partition: Numbers = Numbers()

    def __len__(self) -> int:
        return len(self.fields)

    def __reduce__(self) -> tuple[Callable[..., Fields], tuple[object, ...]]:
        """Pickle the data of each field as a buffer, and each topic once."""
        topics = {topic: index for index, topic in enumerate(dict.fromkeys(self.topic))}
        of_field = BytesWriter()
        for field in self.fields:
            write_i64_le(of_field, topics[field.topic])
        return fields_of, (
            [PickleBuffer(field.data) for field in self.fields],
            list(topics),
            of_field.getvalue(),
            [self.file, self.client, self.broker, self.direction, self.client_id],
            [self.packet, self.time_ns, self.connection, self.correlation_id, self.partition],
        )

    def row_bytes(self, index: int) -> int:
        """Return how many bytes each record of a field takes as a row, besides its content."""
        texts = (self.file[index], self.client[index], self.broker[index], self.client_id[index])
        topic = self.topic[index]
        sizes = [len(text) for text in (*texts, topic.name, topic.id_text) if text is not None]
        return ROW_BYTES + sum(sizes)

    def add(  # noqa: PLR0913 - one argument per column, without an object per field
        self,
        field: RecordsField,
        file: str,
        packet: i64,
        time_ns: i64,
        connection: int | None,
        client: str | None,
        broker: str | None,
        direction: str,
        client_id: str | None,
        correlation_id: i64,
    ) -> None:
        """Add a field; NONE and NO_TIME stand for missing values."""
        self.fields.append(field)
        self.bytes += len(field.data)
        self.file.append(file)
        self.packet.put64(packet)
        if time_ns == NO_TIME:
            self.time_ns.none64()
        else:
            self.time_ns.put64(time_ns)
        if connection is None:
            self.connection.none64()
        else:
            self.connection.put64(connection)
        self.client.append(client)
        self.broker.append(broker)
        self.direction.append(direction)
        self.client_id.append(client_id)
        self.correlation_id.put32(correlation_id)
        self.topic.append(field.topic)
        self.partition.put32(field.partition)


def fields_of(
    data: list[bytes | memoryview],
    topics: list[Topic],
    of_field: bytes,
    texts: list[list[str | None]],
    numbers: list[Numbers],
) -> Fields:
    """Return fields that were pickled."""
    fields = Fields()
    fields.file, fields.client, fields.broker, fields.direction, fields.client_id = texts
    fields.packet, fields.time_ns, fields.connection, fields.correlation_id, fields.partition = (
        numbers
    )
    partitions = fields.partition.values.getvalue()
    for index, each in enumerate(data):
        topic = topics[read_i64_le(of_field, index * 8)]
        partition = read_i32_le(partitions, index * 4)
        fields.fields.append(RecordsField(topic, partition, bytes(each)))
        fields.topic.append(topic)
        fields.bytes += len(each)
    return fields


_names: Final[dict[int, tuple[str, str]]] = {}
"""Magic and the last four bits of attributes -> names of timestamp type and codec."""


@final
class Runs:
    """Records, and header values of their batches.

    hidden: whether their content is not to be shown. bytes: what they take in memory.
    """

    def __init__(self, hidden: bool) -> None:
        self.columns: Columns = Columns(b"")
        self.hidden: bool = hidden
        self.bytes: i64 = 0
        self._buffer: bytes = b""
        self._buffer_number: int = 0
        self.field: BytesWriter = BytesWriter()
        self.count: BytesWriter = BytesWriter()
        self.timestamp_type: list[str | None] = []
        self.magic: BytesWriter = BytesWriter()
        self.codec: list[str | None] = []
        self.producer_id: BytesWriter = BytesWriter()
        self.producer_epoch: BytesWriter = BytesWriter()
        self.base_sequence: BytesWriter = BytesWriter()
        self.transactional: BytesWriter = BytesWriter()
        self.control: BytesWriter = BytesWriter()
        self.partition_leader_epoch: BytesWriter = BytesWriter()
        self.base_offset: BytesWriter = BytesWriter()

    @property
    def is_full(self) -> bool:
        """Whether the records are to be handed on."""
        return self.bytes >= RUN_BYTES

    def add(self, reader: ColumnReader, field: i64, row_bytes: i64) -> None:
        """Add records of a batch, as many as there is room for, and at least one."""
        columns, batch = self.columns, reader.batch
        before = len(columns)
        most = max((RUN_BYTES - self.bytes) // row_bytes, 1)
        reader.add(columns, int(most), self._buffer_of(reader.window, batch.data))
        count = len(columns) - before
        if count == 0:
            return
        self.bytes += count * row_bytes
        write_i64_le(self.field, field)
        write_i64_le(self.count, count)
        timestamp_type, codec = batch_names(batch)
        self.timestamp_type.append(timestamp_type)
        self.magic.append(batch.magic)
        self.codec.append(codec)
        write_i64_le(self.producer_id, batch.producer_id)
        write_i16_le(self.producer_epoch, i16(batch.producer_epoch))
        write_i64_le(self.base_sequence, batch.base_sequence)
        self.transactional.append(batch.transactional)
        self.control.append(batch.control)
        write_i32_le(self.partition_leader_epoch, i32(batch.partition_leader_epoch))
        write_i64_le(self.base_offset, batch.base_offset)

    def _buffer_of(self, window: bytes, field: bytes) -> int:
        """Return the number of the buffer with some records. field: that of their field."""
        if window is not self._buffer:
            self._buffer_number = self.columns.add_buffer(window)
            self._buffer = window
            if window is not field:
                self.bytes += len(window)
        return self._buffer_number


def batch_names(batch: Batch) -> tuple[str, str]:
    """Return the names of a batch's timestamp type and codec."""
    number = batch.magic << 4 | batch.attributes & 0xF
    names = _names.get(number)
    if names is None:
        names = batch.timestamp_type.name.lower(), CODEC_NAMES[batch.compression]
        _names[number] = names
    return names


def runs(fields: Fields, hidden: list[bool]) -> Iterator[Runs]:
    """Decode the batches of all fields, up to RUN_BYTES at a time.

    hidden: of each field, whether its content is not to be shown.
    """
    current = Runs(False)
    for index, field in enumerate(fields.fields):
        if current.hidden != hidden[index]:
            if len(current.columns):
                yield current
            current = Runs(hidden[index])
        row_bytes = fields.row_bytes(index)
        for reader in readers(field):
            reader.fill()
            while not reader.ended:
                current.add(reader, index, row_bytes)
                if current.is_full:
                    yield current
                    current = Runs(hidden[index])
                reader.fill()
    if len(current.columns):
        yield current


def readers(field: RecordsField) -> Iterator[ColumnReader]:
    """Open the batches of a field that have records; `problems` reports the others."""
    batches = RecordBatches(field.data)
    budget = Budget(batches.limits)
    errors: list[WireError] = []
    for batch in batches.batches(errors):
        try:
            reader = ColumnReader(batch, budget)
        except WireError:
            continue
        yield reader


def rows_of_fields(of_field: bytes, counts: bytes, fields: i64) -> bytes:
    """Return the number of records in each field, all int64.

    of_field: the field of each batch, in order; counts: its number of records.
    """
    indexes = BytesWriter()
    batch: i64 = 0
    field: i64 = 0
    while field < fields:
        rows: i64 = 0
        while batch < len(counts) // 8 and read_i64_le(of_field, batch * 8) == field:
            rows += read_i64_le(counts, batch * 8)
            batch += 1
        write_i64_le(indexes, rows)
        field += 1
    return indexes.getvalue()
