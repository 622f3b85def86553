"""The data source `kafkapcap`: a table of captures by `spark.read.format("kafkapcap")`.

A task reads whole sets (`sets`: all files together, those of a directory, or each file) with
the engine of a single process, so its rows are correct on their own.

Spark offers no shuffle to data sources, so files and splits that share connections must be read by
one task. `kafkawire.spark.read`, which shuffles, distributes one large set.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from ..capture.exchanges.exchanges import Ended
from ..capture.frames.decoding import LocatedItem
from ..capture.multifile import Blocks, Source, Traffic
from ..capture.rows import Row
from ..capture.tables.multiple import read_together
from .decode.columns import Shaper, is_bare, keep, needed, rows_of_batch, schema_of
from .decode.contexts import BareContext
from .decode.decoding import key_log_of
from .errors import BadOption, NotStreamed, Unreadable, ascii_safe, in_ascii
from .options import Options, listed, parse
from .plan.opening import as_one
from .plan.planning import make_plan, require_files
from .splitting import InputFile, read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class KafkaPcap(DataSource):
    """The data source, see the module."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "kafkapcap"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        with in_ascii():
            entries = dict(options)
            columns = [entries.pop(name) for name in [*entries] if name.lower() == "columns"]
            self._columns = listed(columns[0]) if columns else None
            self._paths, self._options = _parsed(entries)

    def schema(self) -> StructType:
        """Return the columns of the table, or those of the option `columns`."""
        with in_ascii():
            return from_arrow_schema(schema_of(self._options.table, self._columns))

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: ARG002 - Spark's signature
        """Raise NotStreamed: files arrive in a watch, which keeps what spans them."""
        raise NotStreamed

    def reader(self, schema: StructType) -> Reader:
        """Return a reader of the columns in the schema."""
        return Reader(self._paths, self._options, schema)


def _parsed(options: MutableMapping[str, str]) -> tuple[list[str], Options]:
    entries = dict(options)
    path = entries.pop("path", "")
    path_list = entries.pop("paths", "")  # load([...]) passes a list as JSON
    if path_list:
        import json

        return list(json.loads(path_list)), parse(entries)
    if not path:
        raise BadOption("path", path, "a path, a directory, a pattern or a URI")
    return [path], parse(entries)


@dataclass
class SetPartition(InputPartition):
    """The files of a set, in order."""

    files: tuple[InputFile, ...]


class Reader(DataSourceReader):
    """Reads a table, one set per task."""

    def __init__(self, paths: list[str], options: Options, schema: StructType) -> None:
        self._paths = paths
        self._options = options
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._needed = needed(options.table, self._schema.names, options)

    def partitions(self) -> list[SetPartition]:
        """Return the sets."""
        with in_ascii():
            plan = require_files(make_plan(None, self._paths, self._options, whole=True))
        files: dict[int, list[InputFile]] = {}
        for file, number in zip(plan.files, plan.sets, strict=True):
            files.setdefault(number, []).append(file)
        return [SetPartition(tuple(each)) for each in files.values()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a set."""
        assert isinstance(partition, SetPartition)
        return _batches(partition.files, self._needed, self._schema, self._options)


@ascii_safe
def _batches(
    files: tuple[InputFile, ...], needed_columns: list[str], schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    table = options.table
    context = BareContext(SetTraffic(files, options), bare=is_bare(table, needed_columns))
    shaper, wanted = Shaper(table, needed_columns, options), keep(table, options)
    for _, complete in read_together(context, [table], rows_of_batch(table)):
        batch = shaper.shaped(complete)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        # The schema of the user may have wider types.
        made_batch = pa.RecordBatch.from_arrays(
            [_cast(columns[field.name], field) for field in schema], schema=schema
        )
        yield made_batch if wanted is None else made_batch.filter(wanted(columns))


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        requested = f"{field.name} {field.type}"
        raise BadOption(
            "schema", requested, f"a type that the column can be cast to: {error}"
        ) from None


class SetTraffic(Traffic):
    """The captures of a set, in any store."""

    def __init__(
        self,
        files: tuple[InputFile, ...],
        options: Options,
        *,
        leave_out_copies: bool = False,  # as the job, whose tasks do not see all connections
    ) -> None:
        super().__init__(
            (),
            options.ports,
            brokers=options.brokers,
            reassembly=options.reassembly,
            keylog=key_log_of(options.keylog),
            tunnels=options.tunnels,
            leave_out_copies=leave_out_copies,
        )
        self._options = options
        self._files = {file.name: file for file in files}
        self.sources = list(self._files)

    def open(self, source: Source) -> Blocks:
        """Start reading a file."""
        return read(as_one(self._files[str(source)]))

    def again(self) -> SetTraffic:
        """Return a new reading."""
        return SetTraffic(
            tuple(self._files.values()), self._options, leave_out_copies=self.leave_out_copies
        )

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Read the set. Raises Unreadable for a problem of a file if `failOnError` is set."""
        for batch in super().batches():
            if self._options.fail_on_error:
                for item in batch:
                    self._check(item)
            yield batch

    def _check(self, item: LocatedItem | Ended) -> None:
        if item.connection is None and isinstance(item, LocatedItem) and isinstance(item.item, Row):
            raise Unreadable(self.place(item.item.packet)[0], item.item.error)
