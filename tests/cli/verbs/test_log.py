"""`kafkawire log` as its user meets it: rows in three forms, findings, exit codes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from kafkawire.records import BatchBuilder
from kafkawire_cli.main import app
from tests.capture import wire
from tests.conftest import missing
from tests.log import written
from tests.log.written import BASE, Partition


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return written.partition(tmp_path / "orders-3")


def run(*arguments: str | Path) -> Result:
    return invoke("log", *arguments)


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def json_rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def offsets_segment(folder: Path) -> Path:
    path = folder / f"{BASE:020}.log"
    folder.mkdir(exist_ok=True)
    path.write_bytes(written.offset_commits())
    return path


def test_a_directory_stands_for_its_files(partition: Partition) -> None:
    result = run(partition.folder.parent)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = json_rows(result)
    assert len([row for row in rows if row["kind"] == "segment"]) == 36
    assert {row["kind"] for row in rows} == {
        "segment",
        "offset-index",
        "time-index",
        "transaction-index",
        "producer-snapshot",
        "leader-epochs",
        "partition-metadata",
    }


def test_a_record_is_a_json_object(partition: Partition) -> None:
    assert json_rows(run(partition.segment))[0] == {
        "file": str(partition.segment),
        "kind": "segment",
        "position": 0,
        "base_offset": BASE,
        "offset": BASE,
        "timestamp": written.TIME + BASE,
        "timestamp_type": "CREATE_TIME",
        "magic": 2,
        "compression": "none",
        "crc_valid": True,
        "producer_id": 7,
        "producer_epoch": 0,
        "sequence": -1,
        "partition_leader_epoch": -1,
        "transactional": False,
        "control": None,
        "key": {"text": "key 100"},
        "value": {"text": "value"},
        "headers": [["h", {"text": "x"}]],
    }


def test_binary_values_are_hex(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(b"\0\1", b"\xff\xfe")
    builder.append(None, b'{"a":1}')
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(builder.build())
    first, second = json_rows(run(path))
    assert (first["key"], first["value"]) == ({"hex": "0001"}, {"hex": "fffe"})
    assert (second["key"], second["value"]) == (None, {"json": {"a": 1}})


def test_the_directory_says_the_decoder(tmp_path: Path) -> None:
    path = offsets_segment(tmp_path / "__consumer_offsets-12")
    commit, tombstone = json_rows(run(path))
    assert commit["key"]["message"] == {"group": "g", "topic": "t", "partition": 1}
    assert commit["value"]["name"] == "OffsetCommitValue"
    assert commit["value"]["version"] == 3
    assert commit["value"]["message"]["offset"] == 42
    assert tombstone["value"] is None
    assert "hex" in json_rows(run(path, "--decoder", "none"))[0]["value"]


def test_the_decoder_can_be_chosen(tmp_path: Path) -> None:
    path = offsets_segment(tmp_path / "copied")
    assert "hex" in json_rows(run(path))[0]["value"]
    named = json_rows(run(path, "--decoder", "offsets"))[0]
    assert named["value"]["message"]["metadata"] == "m"


def test_the_wrong_decoder_says_why_and_keeps_the_bytes(tmp_path: Path) -> None:
    path = offsets_segment(tmp_path / "copied")
    first = json_rows(run(path, "--decoder", "metadata"))[0]
    assert first["value"]["error"] == "frame version 0, not 1"
    assert first["value"]["hex"].startswith("(redacted, "), "the metadata log holds secrets"
    first = json_rows(run(path, "--decoder", "metadata", "--show-secrets"))[0]
    assert bytes.fromhex(first["value"]["hex"])[:2] == b"\0\3"


def test_a_table(partition: Partition) -> None:
    result = run(partition.folder, "--format", "table")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{partition.file('index')}  offset-index"
    assert lines[1].split() == ["entry", "offset", "position"]
    assert any("key 100 -> value h=x" in line for line in lines)
    assert "2023-11-14T22:13:20.100" in result.stdout


def test_a_table_names_messages(tmp_path: Path) -> None:
    path = offsets_segment(tmp_path / "__consumer_offsets-12")
    lines = run(path, "-f", "table").stdout.splitlines()
    assert 'OffsetCommitKey{"group": "g", "topic": "t", "partition": 1} -> null' in lines[3]


def test_a_table_escapes_control_characters(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(None, "a\nb \x1b[31m\u202e".encode())
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(builder.build())
    assert "\x1b" not in run(path, "-f", "table").stdout


def test_parquet_of_one_kind_is_one_file(partition: Partition, tmp_path: Path) -> None:
    out = tmp_path / "dump.parquet"
    result = run(partition.segment, "--format", "parquet", "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    rows = pq.read_table(out).to_pylist()
    assert len(rows) == 36
    assert rows[0]["offset"] == BASE
    assert rows[0]["value"] == b"value"
    assert rows[0]["headers"] == [{"key": "h", "value": b"x", "key_bytes": None}]
    assert rows[0]["value_message"] is None


def test_parquet_of_several_kinds_is_a_file_each(partition: Partition, tmp_path: Path) -> None:
    result = run(partition.folder, "-f", "parquet", "-o", tmp_path / "dump.parquet")
    assert result.exit_code == 0
    assert {path.name for path in tmp_path.glob("*.parquet")} == {
        "dump.records.parquet",
        "dump.offset-index.parquet",
        "dump.time-index.parquet",
        "dump.aborted-transactions.parquet",
        "dump.producers.parquet",
        "dump.leader-epochs.parquet",
        "dump.properties.parquet",
    }
    index = pq.read_table(tmp_path / "dump.offset-index.parquet").to_pylist()
    assert index[0] == {
        "file": str(partition.file("index")),
        "entry": 0,
        "offset": 114,
        "position": partition.batches[3].position,
    }


def test_parquet_has_messages_as_json(tmp_path: Path) -> None:
    path = offsets_segment(tmp_path / "__consumer_offsets-12")
    run(path, "-f", "parquet", "-o", tmp_path / "x.parquet")
    first, tombstone = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert json.loads(first["value_message"])["message"]["offset"] == 42
    assert tombstone["value"] is None
    assert json.loads(tombstone["key_message"])["name"] == "OffsetCommitKey"


def test_findings_go_to_standard_error_with_file_and_position(partition: Partition) -> None:
    raw = bytearray(partition.segment.read_bytes())
    raw[70] ^= 1
    partition.segment.write_bytes(raw)
    result = run(partition.segment)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{partition.segment}:0: checksum mismatch: ")
    assert result.stderr.rstrip().endswith("[crc]")
    assert len(json_rows(result)) == 36
    assert run(partition.segment, "--no-verify").exit_code == 0


def test_notes_do_not_count(partition: Partition) -> None:
    with partition.segment.open("ab") as file:
        file.write(partition.batches[-1].data[:40])
    result = run(partition.segment)
    assert result.exit_code == 0
    assert "note: incomplete batch at the end of the file: 40 bytes [active-tail]" in result.stderr


def test_strangers_in_a_directory_are_named(partition: Partition) -> None:
    (partition.folder / "notes.txt").touch()
    result = run(partition.folder)
    assert result.exit_code == 0
    assert "notes.txt:0: note: unknown file name, skipped" in result.stderr


def test_a_segment_under_another_name(partition: Partition, tmp_path: Path) -> None:
    """As it is passed on: `orders.bin`, `segment (1)`."""
    copy = tmp_path / "copied.bin"
    copy.write_bytes(partition.segment.read_bytes())
    rows = [{**row, "file": ""} for row in json_rows(run(copy))]
    assert rows == [{**row, "file": ""} for row in json_rows(run(partition.segment))] != []


OTHERS: dict[str, tuple[bytes, str]] = {
    "a.pcap": (wire.pcap([]), "a capture file; read it with kafkawire decode"),
    "log.gz": (gzip.compress(written.batch(0)), "decompress it first: gzip -d"),
    "log.zip": (b"PK\3\4" + bytes(60), "a zip archive; unpack it first: unzip"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_file_is_that_belongs_to_no_log(name: str, tmp_path: Path) -> None:
    content, said = OTHERS[name]
    (tmp_path / name).write_bytes(content)
    result = run(tmp_path / name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize("verb", ["decode", "summary", "sql"])
def test_verbs_of_captures_say_what_a_segment_is(verb: str, partition: Partition) -> None:
    query = ["SELECT 1"] if verb == "sql" else []
    result = invoke(verb, *query, partition.segment)
    assert result.exit_code == 2
    assert "a segment of a broker's log; read it with kafkawire log" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.log"], "missing.log: No such file or directory"),
        (["notes.txt"], "notes.txt: unknown file name"),
        (["empty"], "empty: no log files in this directory"),
        (["one.log", "--format", "parquet"], "--out"),
        (["one.log", "--decoder", "wrong"], "--decoder"),
        (["one.log", "--out", "no/where.jsonl"], "no/where.jsonl: No such file or directory"),
        (["one.log", "-f", "parquet", "--out", "no/where.parquet"], "no/where.parquet: "),
    ],
)
def test_usage_errors(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "one.log").write_bytes(written.batch(0))
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_out_is_a_file(partition: Partition, tmp_path: Path) -> None:
    result = run(partition.segment, "--out", tmp_path / "rows.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 36


def test_a_full_disk_is_not_a_traceback(partition: Partition) -> None:
    full = Path("/dev/full")
    if not full.exists():
        missing("/dev/full")
    result = run(partition.segment, "--out", full)
    assert result.exit_code == 2
    assert result.stderr.startswith("kafkawire log: [Errno 28]")


# -- headers of batches


def test_headers_of_batches(partition: Partition) -> None:
    found = json_rows(run(partition.segment, "--batches"))
    assert [(row["position"], row["base_offset"], row["last_offset"]) for row in found] == [
        each[:3] for each in partition.batches
    ]
    records = json_rows(run(partition.segment))
    for row in found:
        same = [one for one in records if one["position"] == row["position"]]
        assert row["records"] == len(same)
        assert row["max_timestamp"] == max(one["timestamp"] for one in same)
        for name in ("compression", "producer_id", "producer_epoch", "transactional", "crc_valid"):
            assert {one[name] for one in same} == {row[name]}
    assert sum(row["size"] for row in found) == len(b"".join(b.data for b in partition.batches))


def test_headers_of_a_directory_are_those_of_its_segments(partition: Partition) -> None:
    result = run(partition.folder, "--batches", "--format", "table")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert len(lines) == 2 + len(partition.batches)
    assert max(map(len, lines[1:])) <= 110
    assert run(partition.file("index"), "--batches").exit_code == 2


def test_headers_in_parquet(partition: Partition, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run(partition.folder, "--batches", "-f", "parquet", "-o", out).exit_code == 0
    found = pq.read_table(out).to_pylist()
    assert [row["base_offset"] for row in found] == [each.base_offset for each in partition.batches]


def test_a_torn_tail_is_named(partition: Partition) -> None:
    whole = partition.segment.read_bytes()
    last = partition.batches[-1]
    partition.segment.write_bytes(whole[: last.position + 70])
    plain, result = run(partition.segment), run(partition.segment, "--batches")
    assert (plain.exit_code, result.exit_code) == (0, 1)
    before = partition.batches[-2].last_offset
    assert result.stderr == (
        f"{partition.segment}:{last.position}: incomplete batch at the end of the file: 70 bytes, "
        f"after offset {before} [torn-tail]\n"
    )
    assert len(json_rows(result)) == len(partition.batches) - 1


def test_a_zeroed_tail_is_named(partition: Partition) -> None:
    whole = partition.segment.read_bytes()
    partition.segment.write_bytes(whole + bytes(4096))
    plain, result = run(partition.segment), run(partition.segment, "--batches")
    assert (plain.exit_code, result.exit_code) == (0, 1)
    assert result.stderr == (
        f"{partition.segment}:{len(whole)}: zeros to the end of the file: 4096 bytes, "
        f"after offset {partition.batches[-1].last_offset} [zero-tail]\n"
    )
    assert len(json_rows(result)) == len(partition.batches)


def test_a_batch_whose_end_is_zero_has_a_wrong_checksum(partition: Partition) -> None:
    whole = partition.segment.read_bytes()
    partition.segment.write_bytes(whole[:-8] + bytes(8))
    result = run(partition.segment, "--batches")
    assert result.exit_code == 1
    assert "checksum mismatch" in result.stderr
    assert json_rows(result)[-1]["crc_valid"] is False
