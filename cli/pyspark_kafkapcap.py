"""Where Spark looks for data sources by itself: every top-level module called pyspark_*.

Law: importing it never fails and costs next to nothing; one that raises would hide all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """`spark.read.format("kafkapcap")`; the work is in `kafkawire.spark.source`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "kafkapcap"

    def schema(self) -> StructType | str:
        """Give the columns of the table."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read the columns that the schema has."""
        return self._source().reader(schema)

    def _source(self) -> DataSource:
        from kafkawire.spark.source import KafkaPcap

        return KafkaPcap(self.options)
