"""An object store: moto's S3 server on loopback, read through pyarrow.fs."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from kafkawire.spark.splitting import inputs, plan, probe, prove, read, stores

from ...capture.wire import START_NS, Packet, pcap, pcapng
from .containers import bgzf, pieces_of
from .law import in_order, packet_tuples, probed, serially, split_up

PACKETS = [Packet(bytes([i % 251]) * 1200, START_NS + i * 10**6) for i in range(4000)]
FILES = {
    "day=1/a.pcap": pcap(PACKETS),
    "day=1/b.pcapng": pcapng(PACKETS[:100])[:-7],
    "day=2/c.pcap.gz": bgzf(pieces_of(pcap(PACKETS[:500]), [60_000])),
    "day=2/_temporary/d.pcap": b"being written",
    "day=2/notes.txt": b"no capture",
}
BUCKET = "captures"


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    """Serve the files; gives the options to reach them."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server.start()
        host, port = server.get_host_and_port()
        given = {
            "endpoint_override": f"{host}:{port}",
            "scheme": "http",
            "region": "us-east-1",
            "access_key": "test",
            "secret_key": "SECRET-KEY",
        }
        store = fs.S3FileSystem(**given, allow_bucket_creation=True)
        store.create_dir(BUCKET)
        for name, data in FILES.items():
            with store.open_output_stream(f"{BUCKET}/{name}", compression=None) as out:
                out.write(data)
        yield given
        server.stop()


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the size of every read of a remote file."""
    sizes: list[int] = []
    plain = stores.RemoteReader.read

    def noted(self: stores.RemoteReader, offset: int, size: int) -> bytes:
        data = plain(self, offset, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(stores.RemoteReader, "read", noted)
    return sizes


@pytest.mark.parametrize("name", ["day=1/a.pcap", "day=1/b.pcapng", "day=2/c.pcap.gz"])
def test_an_object_reads_as_the_file(name: str, options: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(FILES[name])
    (file,) = inputs([f"s3://{BUCKET}/{name}"], options)
    assert file.name == f"s3://{BUCKET}/{name}"
    assert file.size == len(FILES[name])
    found, _ = split_up(file, file.size // 5)
    assert found == serially(path)


def test_listing(options: dict[str, str]) -> None:
    def names(*given: str, recursive: bool = False) -> list[str]:
        found = inputs(given, options, recursive=recursive)
        return [file.name.removeprefix(f"s3://{BUCKET}/") for file in found]

    assert names(f"s3://{BUCKET}/day=2/") == ["day=2/c.pcap.gz", "day=2/notes.txt"]
    assert names(f"s3://{BUCKET}", recursive=True) == [
        name for name in sorted(FILES) if "_temporary" not in name
    ]
    assert names(f"s3://{BUCKET}/day=*/?.pcap*") == [
        "day=1/a.pcap",
        "day=1/b.pcapng",
        "day=2/c.pcap.gz",
    ]
    assert names(f"s3://{BUCKET}/**/d.pcap") == ["day=2/_temporary/d.pcap"]
    twice = f"s3://{BUCKET}/day=1/a.pcap"
    assert names(twice, twice) == ["day=1/a.pcap"]


def test_a_file_that_is_not_a_capture(options: dict[str, str]) -> None:
    files = inputs([f"s3://{BUCKET}/day=2"], options)
    stitched = prove([split for file in files for split in plan(file, 10_000)], probed)
    problems_by_file = {
        file.name: in_order(problems) for file, problems in stitched.problems.items()
    }
    assert problems_by_file == {
        f"s3://{BUCKET}/day=2/c.pcap.gz": [],
        f"s3://{BUCKET}/day=2/notes.txt": [
            ("BadMagic", 0, "not a capture file (starts with 6e 6f 20 63)")
        ],
    }


def test_little_more_is_read_than_needed(options: dict[str, str], bytes_read: list[int]) -> None:
    (file,) = inputs([f"s3://{BUCKET}/day=1/a.pcap"], options)
    splits = plan(file, 1 << 20)
    assert len(splits) == 5
    planned = sum(bytes_read)
    assert planned < 150_000
    bytes_read.clear()
    proofs = [probe(split) for split in splits]
    assert sum(proof.packets for proof in proofs) == len(PACKETS)
    # a split's last packet reaches into the next: one read of BEYOND for each edge, and of what
    # is there of this packet again
    assert sum(bytes_read) <= file.size + 4 * ((1 << 16) + 1216)
    assert len(bytes_read) <= 2 * len(splits)


def test_missing_objects_and_servers_are_named(options: dict[str, str]) -> None:
    missing = f"s3://{BUCKET}/day=3/none.pcap"
    with pytest.raises(FileNotFoundError, match=missing):
        inputs([missing], options)
    with pytest.raises(FileNotFoundError, match=r"day=9/\*\.pcap: no file matches"):
        inputs([f"s3://{BUCKET}/day=9/*.pcap"], options)
    nobody = {**options, "endpoint_override": "127.0.0.1:9"}
    with pytest.raises(OSError, match=rf"s3://{BUCKET}/day=1/a\.pcap: read failed: .*NETWORK"):
        inputs([f"s3://{BUCKET}/day=1/a.pcap"], nobody)
    with pytest.raises(ValueError, match="endpoint_overide"):
        inputs([f"s3://{BUCKET}/day=1/a.pcap"], {"endpoint_overide": "x"})


def test_a_deleted_object(options: dict[str, str]) -> None:
    (file,) = inputs([f"s3://{BUCKET}/day=1/a.pcap"], options)
    store = fs.S3FileSystem(**options)
    store.copy_file(f"{BUCKET}/day=1/a.pcap", f"{BUCKET}/gone.pcap")
    (file,) = inputs([f"s3://{BUCKET}/gone.pcap"], options)
    (split,) = plan(file, 1 << 30)
    store.delete_file(f"{BUCKET}/gone.pcap")
    with pytest.raises(FileNotFoundError, match=r"gone\.pcap: no such file"):
        list(read(split))


def test_keys_are_hidden_in_repr_and_pickled(options: dict[str, str]) -> None:
    (file,) = inputs([f"s3://{BUCKET}/day=1/a.pcap"], options)
    (split,) = plan(file, 1 << 30)
    assert "SECRET-KEY" not in repr(split)
    again = pickle.loads(pickle.dumps(split))
    assert packet_tuples(read(again)) == packet_tuples(read(split))
    with_keys = f"s3://test:SECRET-KEY@{BUCKET}/day=1/a.pcap"
    others = {name: text for name, text in options.items() if not name.endswith("_key")}
    assert inputs([with_keys], others)[0].name == file.name
