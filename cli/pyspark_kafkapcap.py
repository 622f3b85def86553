"""Registers the data source `kafkapcap`: Spark imports every top-level module named pyspark_*.

Importing it never fails and costs next to nothing; an exception here would hide all other data
sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """`spark.read.format("kafkapcap")`, implemented in `kafkawire.spark.source`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "kafkapcap"

    def schema(self) -> StructType | str:
        """Return the columns of the table."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns in the schema."""
        return self._source().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Raise NotStreamed."""
        return self._source().streamReader(schema)

    def _source(self) -> DataSource:
        from kafkawire.spark.source import KafkaPcap

        return KafkaPcap(self.options)
