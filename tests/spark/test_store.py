"""An object store: moto's S3 server on loopback, read and written by the workers."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyarrow import fs
from pyarrow.dataset import dataset
from pyspark.sql import SparkSession

from kafkawire.spark import job, read, reading
from kafkawire.spark.options import parse
from tests.conftest import FIXTURES

from .conftest import counted, of_frame, rows_of

NAMES = ("kcat-kf.pcap", "ck-848.pcap")
SCRATCH = "s3://rotated/scratch"
CUT = {"splitBytes": "20k", "partitions": "2"}


def test_rows_are_those_of_the_files(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {
            "endpoint_override": f"{host}:{port}",
            "scheme": "http",
            "region": "us-east-1",
            "access_key": "test",
            "secret_key": "test",
        }
        store = fs.S3FileSystem(**options, allow_bucket_creation=True)
        store.create_dir("rotated")
        for name in NAMES:
            with store.open_output_stream(f"rotated/{name}", compression=None) as out:
                out.write((FIXTURES / "captures" / name).read_bytes())
        frame = read(spark, "s3://rotated/*.pcap", splitBytes="40k", **options)
        source = spark.read.format("kafkapcap").options(**options).load("s3://rotated/")
        parsed = parse(options)
        monkeypatch.setattr(reading, "decode", None)  # nothing goes through frames of Spark
        spilled = read(spark, "s3://rotated/*.pcap", scratch=SCRATCH, **CUT, **options)
        groups = read(
            spark, "s3://rotated/*.pcap", "group_events", scratch=SCRATCH, **CUT, **options
        )
        assert groups.count() > 0
        assert len(store.get_file_info(fs.FileSelector("rotated/scratch", recursive=True))) > 4
        found = [of_frame(frame), of_frame(source), of_frame(spilled)]
        for where, given in (
            ("out", ["s3://rotated/*.pcap"]),
            ("sent", [str(FIXTURES / "captures" / name) for name in NAMES]),
        ):
            if where == "sent":  # as on a cluster
                monkeypatch.setattr(job, "chosen", lambda *_: None)
            job.run(spark, given, f"s3://rotated/{where}", ["exchanges"], parsed)
            written = dataset(f"rotated/{where}/exchanges", filesystem=store, partitioning="hive")
            found.append(written.to_table(columns=frame.columns).to_pylist())
            assert all("/date=" in name and "/api=" in name for name in written.files)
            rest = store.get_file_info(fs.FileSelector(f"rotated/{where}", recursive=True))
            assert not any("/.rows-" in each.path for each in rest)
        with pytest.raises(ValueError, match="invalid option of the store"):
            read(spark, "s3://rotated/*.pcap", **{**options, "regions": "eu"})
    finally:
        server.stop()
    files = [str(FIXTURES / "captures" / name) for name in NAMES]
    want = counted(rows_of(files, "exchanges"))
    for at, rows in enumerate(found):
        for row in rows:
            for column in ("file", "response_file"):
                if row[column] is not None:
                    assert row[column].startswith("s3://rotated/") == (at < 4)
                    row[column] = str(FIXTURES / "captures" / Path(row[column]).name)
        assert counted(rows) == want
