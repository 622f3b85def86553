"""Reads the metadata log of a real Kafka from its files."""

from __future__ import annotations

from collections.abc import Iterator

from kafkawire.controller import MetadataLoader
from kafkawire.log import InternalLog, RecordRow, read, recognise

from .broker import Broker


def metadata_log(broker: Broker) -> Iterator[RecordRow]:
    """Read all records but control records and those that only move the offset."""
    for path in sorted((broker.data / "__cluster_metadata-0").glob("*.log")):
        file = recognise(path)
        assert file is not None
        for row in read(file, InternalLog.METADATA):
            assert isinstance(row, RecordRow), row
            if row.control is None:
                yield row


def loaded(broker: Broker) -> MetadataLoader:
    """Load the metadata as it is now."""
    loader = MetadataLoader()
    rows = metadata_log(broker)
    loader.apply_decoded((row.offset, row.decoded) for row in rows if row.decoded is not None)
    return loader
