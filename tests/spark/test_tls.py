"""The option `keylog`: the rows of one process, from the data source, the job and a watch."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import read
from kafkawire.spark import job, register
from kafkawire.spark.errors import BadOption
from kafkawire.spark.options import parse
from kafkawire.spark.write.output_directory import MANIFEST
from tests.conftest import FIXTURES

from .conftest import counted, of_frame
from .watching.local_batches import decode_batches, packets

TLS = FIXTURES / "tls"
FILES = [str(TLS / f"{name}.pcap") for name in ("ck-tls13-aes256", "resumed-tls12")]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The key logs of both captures in one."""
    file = tmp_path / "keys"
    file.write_bytes(b"".join(Path(each).with_suffix(".keys").read_bytes() for each in FILES))
    return file


def expected(table: str, keys: Path) -> list[dict[str, Any]]:
    return [row for batch in read(FILES, table, keylog=keys) for row in batch.to_pylist()]


@pytest.mark.parametrize("table", ["exchanges", "connections", "problems"])
def test_the_data_source(spark: SparkSession, table: str, keys: Path) -> None:
    register(spark)
    reader = spark.read.format("kafkapcap").option("table", table).option("keylog", str(keys))
    frame = reader.load(FILES)
    assert counted(of_frame(frame)) == counted(expected(table, keys))


def test_the_job(spark: SparkSession, keys: Path, tmp_path: Path) -> None:
    output, said = tmp_path / "out", list[str]()
    options = parse({"keylog": str(keys), "splitBytes": "9k"})
    manifest = job.run(spark, FILES, str(output), ["exchanges"], options, said.append)
    frame = spark.read.parquet(str(output / "exchanges")).drop("date", "api")
    assert counted(of_frame(frame)) == counted(expected("exchanges", keys))
    assert len(expected("exchanges", keys)) > 20
    assert manifest["payload"]["unaccounted"] == 0 < manifest["payload"]["tls"]
    secrets = [line.split()[2] for line in keys.read_text().splitlines() if line[0] != "#"]
    written = "".join([*said, (output / MANIFEST).read_text(), repr(options)])
    assert not any(secret in written for secret in secrets)


def test_batches_of_a_watch_cut_anywhere(keys: Path) -> None:
    """Also inside handshakes and records."""
    options = parse({"keylog": str(keys)})
    names, table = packets(FILES, options)
    for seed in range(3):
        places = sorted(random.Random(seed).sample(range(len(table) + 1), 6))
        batches = [
            table.slice(start, end - start)
            for start, end in zip([0, *places], [*places, len(table)], strict=True)
        ]
        made = decode_batches(names, batches, options=options)
        for each in ("exchanges", "connections", "problems"):
            assert counted(made.finished(each)) == counted(expected(each, keys)), (seed, each)


def test_a_key_log_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="readable file"):
        parse({"keylog": str(tmp_path / "none")})
    wrong = tmp_path / "wrong"
    wrong.write_text("hunter2\n")
    with pytest.raises(BadOption, match="not a key log in NSS format") as caught:
        parse({"keylog": str(wrong)})
    assert "hunter2" not in str(caught.value)
    assert pickle.loads(pickle.dumps(parse({"keylog": FILES[0][:-4] + "keys"}))).keylog
