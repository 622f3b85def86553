"""Records: control batches, and batches that stay compressed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkawire.records import BatchBuilder, Compression
from kafkawire.records.compression.codecs import compress
from kafkawire.records.control import ControlType, control_key, end_txn_value
from tests.capture.written import Scenario
from tests.records.test_hostile import with_records

from .test_conversations import experts, messages
from .test_golden import as_fetched


def test_control_records(tmp_path: Path) -> None:
    builder = BatchBuilder(
        base_offset=9, producer_id=7, producer_epoch=0, transactional=True, control=True
    )
    builder.append(control_key(ControlType.COMMIT), end_txn_value(5))
    scenario = Scenario()
    as_fetched(scenario, 1, builder.build())
    responded = messages(scenario, tmp_path)[1]
    assert responded.value("control_type") == str(int(ControlType.COMMIT))
    assert responded.value("control_coordinator_epoch") == "5"
    assert (responded.value("batch_control"), responded.value("record_offset")) == ("1", "9")


def test_batches_stay_compressed_if_wanted(tmp_path: Path) -> None:
    builder = BatchBuilder(base_offset=0, compression=Compression.GZIP)
    builder.append(b"key", b"value")
    scenario = Scenario()
    as_fetched(scenario, 1, builder.build())
    responded = messages(scenario, tmp_path, "-o", "kafkawire.decompress:FALSE")[1]
    assert responded.value("record_key") is None
    assert responded.find("batch_compressed") is not None
    assert experts(responded) == ["decompression is off"]


def test_large_gzip_batches_stay_compressed(tmp_path: Path) -> None:
    """Wireshark's function has no limit, and a small batch may expand a thousandfold."""
    builder = BatchBuilder(base_offset=0, compression=Compression.GZIP)
    builder.append(b"key", random.Random(0).randbytes(300_000))
    scenario = Scenario()
    as_fetched(scenario, 1, builder.build())
    assert experts(messages(scenario, tmp_path)[1]) == ["gzip: too large"]


def test_offsets_and_timestamps_beyond_2_to_the_53(tmp_path: Path) -> None:
    """Numbers of Lua 5.2 could not hold them."""
    offset, time = (1 << 62) + 1, (1 << 61) + 3
    builder = BatchBuilder(base_offset=offset)
    builder.append(b"a", None, timestamp=time)
    builder.append(None, b"b", timestamp=time + (1 << 40) + 1)
    builder.append(None, b"c", timestamp=time - 5)
    scenario = Scenario()
    as_fetched(scenario, 1, builder.build())
    responded = messages(scenario, tmp_path)[1]
    shown = [item for item in responded.walk() if item.name == "kafkawire.record"]
    assert [int(item.value("record_offset") or 0) for item in shown] == [
        offset,
        offset + 1,
        offset + 2,
    ]
    assert [int(item.value("record_timestamp") or 0) for item in shown] == [
        time,
        time + (1 << 40) + 1,
        time - 5,
    ]


def compressed(codec: Compression, *parts: bytes) -> bytes:
    """Write a batch whose records are compressed apart, one stream after another."""
    return with_records(b"".join(compress(codec, part, 2) for part in parts), 2, codec)


def record(at: int) -> bytes:
    return b"\x12\x00\x00%c\x01\x06v%d!\x00" % (2 * at, at)


@pytest.mark.parametrize("codec", [Compression.SNAPPY, Compression.LZ4])
@pytest.mark.parametrize(
    "parts", [(record(0), record(1)), (record(0)[:5], b"", record(0)[5:] + record(1))]
)
def test_streams_one_after_another(
    codec: Compression, parts: tuple[bytes, ...], tmp_path: Path
) -> None:
    scenario = Scenario()
    as_fetched(scenario, 1, compressed(codec, *parts))
    responded = messages(scenario, tmp_path)[1]
    assert experts(responded) == []
    shown = [item for item in responded.walk() if item.name == "kafkawire.record"]
    assert [item.value("record_value") for item in shown] == ["76:30:21", "76:31:21"]


def test_a_skippable_lz4_frame_and_a_snappy_stream_that_is_cut(tmp_path: Path) -> None:
    scenario = Scenario()
    skippable = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"
    frame = compress(Compression.LZ4, record(0), 2)
    as_fetched(scenario, 1, with_records(skippable + frame, 1, Compression.LZ4))
    stream = compress(Compression.SNAPPY, record(0), 2)
    as_fetched(scenario, 2, with_records(stream + stream[:9], 1, Compression.SNAPPY))
    responded = messages(scenario, tmp_path)
    assert [experts(message) for message in responded[1::2]] == [[], ["snappy: the data ends"]]
