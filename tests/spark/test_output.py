"""The output directory of jobs: its lock, what a job may delete, the check of its files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from typer.testing import CliRunner

from kafkawire.spark import check, job
from kafkawire.spark.errors import BadOption
from kafkawire.spark.options import parse
from kafkawire.spark.splitting import InputFile, inputs, stores
from kafkawire.spark.splitting.stores import Store
from kafkawire.spark.watch.commit_log import CommitLog, WatchError
from kafkawire.spark.write.checking import check_files
from kafkawire.spark.write.manifest import manifest_pieces
from kafkawire.spark.write.output_directory import (
    MANIFEST,
    OutputDirectory,
    OutputFile,
    OutputRefused,
)
from kafkawire.spark.write.output_lock import LOCK, Holder, OutputInUse, locked
from kafkawire.spark.write.writing import TableDirectory
from kafkawire_cli.main import app
from tests.conftest import FIXTURES, ROOT

SCHEMA: Final = pa.schema([("time", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
BATCH: Final = pa.RecordBatch.from_pydict({"time": [1, 2, 86_400_000_000], "n": [1, 2, 3]}, SCHEMA)
TABLES: Final = ("connections", "problems")


def folder_of(output: OutputDirectory, table: str, application: str) -> TableDirectory:
    path = f"{output.root}/{table}"
    return TableDirectory(output.store, path, False, lambda each: each, application)


def write(
    output: OutputDirectory,
    application: str,
    tables: Iterable[str] = TABLES,
    *,
    finish: bool = True,
) -> list[OutputFile]:
    """Write tables as a job does: the first ones have rows, the last one has none."""
    tables = [*tables]
    output.begin(application, tables, output.examine(tables))
    files: list[OutputFile] = []
    for table in tables:
        folder = folder_of(output, table, application)
        rows = folder.write([BATCH]) if table != tables[-1] else []
        files += folder.only(rows or [folder.write_schema(SCHEMA)])
    if finish:
        manifest = {
            "application": application,
            "inputs": [{"name": "a.pcap", "status": "ok"}],
            "tables": {table: {"rows": 0} for table in tables},
            "files": [file.as_json() for file in files],
        }
        output.complete(manifest_pieces(manifest))
    return files


@pytest.fixture
def local(tmp_path: Path) -> OutputDirectory:
    return OutputDirectory(Store(), str(tmp_path / "out"))


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> OutputDirectory:
    """A directory of a store without renames and locks, in memory."""
    memory = fs._MockFileSystem()
    monkeypatch.setattr(stores, "OPENERS", {})
    monkeypatch.setattr(stores, "_by_fsspec", lambda *_: memory)
    stores.filesystem.cache_clear()
    return OutputDirectory(Store("mock"), "bucket/out")


@pytest.fixture(params=["local", "remote"])
def output(request: pytest.FixtureRequest) -> OutputDirectory:
    found: OutputDirectory = request.getfixturevalue(request.param)
    return found


def names(output: OutputDirectory) -> list[str]:
    """All files of a directory."""
    selector = fs.FileSelector(output.root, recursive=True, allow_not_found=True)
    found = stores.filesystem(output.store).get_file_info(selector)
    start = len(output.root) + 1
    return sorted(each.path[start:] for each in found if each.type == fs.FileType.File)


def put(output: OutputDirectory, name: str, data: bytes = b"foreign") -> None:
    files, path = stores.filesystem(output.store), f"{output.root}/{name}"
    files.create_dir(path.rpartition("/")[0], recursive=True)
    with files.open_output_stream(path) as out:
        out.write(data)


# -- what is replaced


def test_a_job_replaces_what_the_manifest_names(output: OutputDirectory) -> None:
    first = write(output, "app-1")
    assert names(output) == sorted([MANIFEST, *(file.name for file in first)])
    assert all("part-app-1-" in file.name for file in first)
    second = write(output, "app-2")
    assert names(output) == sorted([MANIFEST, *(file.name for file in second)])
    assert check_files(output) == (3, 3, [])


def test_a_table_without_rows_has_its_columns(local: OutputDirectory) -> None:
    write(local, "app-1")
    table = pq.read_table(f"{local.root}/problems")
    assert len(table) == 0
    assert table.schema.names == [*SCHEMA.names, "date"]


def test_what_a_killed_job_left_is_removed(output: OutputDirectory) -> None:
    """Also its staged files and spill files, and what the job before it had named."""
    write(output, "app-1")
    for application in ("app-2", "app-3"):
        write(output, application, finish=False)
        put(output, f"connections/date=2026-01-01/.part-{application}-00009.parquet")
        put(output, f".rows-{application}/spilled")
    assert MANIFEST not in names(output)
    with pytest.raises(OutputRefused, match=r"did not finish, or is running .*app-2, app-3"):
        check_files(output)
    fourth = write(output, "app-4")
    assert names(output) == sorted([MANIFEST, *(file.name for file in fourth)])


def test_killed_while_it_deletes(local: OutputDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next job still knows which files the first one had written."""
    write(local, "app-1")
    deleted: list[str] = []

    def delete(name: str) -> None:
        deleted.append(name)
        if len(deleted) == 3:
            raise KeyboardInterrupt
        Path(local.root, name).unlink()

    with monkeypatch.context() as patched:
        patched.setattr(local, "_delete", delete)
        with pytest.raises(KeyboardInterrupt):
            write(local, "app-2")
    third = write(local, "app-3")
    assert names(local) == sorted([MANIFEST, *(file.name for file in third)])


# -- what is refused


@pytest.mark.parametrize(
    "name",
    ["connections/date=2026-01-01/capture.pcap", "connections/x.parquet", "problems/a/b/notes.txt"],
)
def test_files_of_others_are_not_deleted(output: OutputDirectory, name: str) -> None:
    write(output, "app-1")
    put(output, name)
    before = names(output)
    with pytest.raises(OutputRefused, match=f"{name} is not of a job"):
        write(output, "app-2")
    assert names(output) == before
    (difference,) = check_files(output).differences
    assert str(difference) == f"{name}: not in the manifest"


def test_the_same_names_of_another_application_are_not_deleted(output: OutputDirectory) -> None:
    """A file is a job's if a manifest names it, not because it looks like one."""
    put(output, "connections/date=2026-01-01/part-app-0-00001.parquet")
    with pytest.raises(OutputRefused, match="is not of a job"):
        write(output, "app-1")


def test_hidden_files_stay(output: OutputDirectory) -> None:
    for name in ("connections/.crc", "connections/_SUCCESS"):
        put(output, name)
    for application in ("app-1", "app-2"):
        write(output, application)
    assert {"connections/.crc", "connections/_SUCCESS"} < {*names(output)}
    assert check_files(output).differences == []


def test_a_job_refuses_other_tables_of_an_earlier_one(output: OutputDirectory) -> None:
    write(output, "app-1")
    with pytest.raises(OutputRefused, match="an earlier job wrote problems here"):
        write(output, "app-2", ["connections"])
    write(output, "app-2", ["connections", "records", "problems"])
    assert check_files(output).differences == []


def test_a_job_refuses_the_directory_of_a_watch(local: OutputDirectory) -> None:
    batch = Path(local.root) / "connections" / "batch=0" / "part-0.parquet"
    CommitLog(Path(local.root), TABLES).__exit__()
    batch.parent.mkdir(parents=True)
    batch.write_bytes(b"rows")
    for call in (
        lambda: write(local, "app-1"),
        lambda: job.check_request(["a.pcap"], local.root, TABLES, parse({})),
        lambda: check_files(local),
    ):
        with pytest.raises(OutputRefused, match="a watch writes to this directory"):
            call()
    assert batch.read_bytes() == b"rows"


@pytest.mark.parametrize("finish", [True, False])
def test_a_watch_refuses_the_directory_of_a_job(local: OutputDirectory, finish: bool) -> None:
    write(local, "app-1", finish=finish)
    before = names(local)
    with pytest.raises(WatchError, match="a job writes to this directory"):
        CommitLog(Path(local.root), TABLES)
    assert names(local) == before


def test_a_watch_refuses_files_of_others(local: OutputDirectory) -> None:
    put(local, "connections/x.parquet")
    with pytest.raises(WatchError, match=r"connections/x\.parquet is not of this watch"):
        CommitLog(Path(local.root), TABLES)
    assert names(local) == ["connections/x.parquet"]


def test_a_watch_does_not_begin_beside_a_job(local: OutputDirectory) -> None:
    with (
        locked(local.store, local.root, holder("app-1")),
        pytest.raises(WatchError, match=r"application app-1 .*is writing"),
    ):
        CommitLog(Path(local.root), TABLES)
    CommitLog(Path(local.root), TABLES).__exit__()


def test_inputs_in_the_output(tmp_path: Path) -> None:
    output = OutputDirectory(Store(), str(tmp_path / "out"))
    inside, beside = tmp_path / "out" / "exchanges" / "a.pcap", tmp_path / "out-2" / "a.pcap"
    for path in (inside, beside):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"capture")
    (tmp_path / "link").symlink_to(inside.parent)
    output.require_outside(inputs([beside, tmp_path / "out-2"]))
    for given in (inside, inside.parent, tmp_path / "link"):
        with pytest.raises(OutputRefused, match=r"holds the input .*a\.pcap"):
            output.require_outside(inputs([beside, given]))
    bucket = OutputDirectory(Store("s3"), "bucket/out")
    bucket.require_outside([InputFile("s3://bucket/outer/a.pcap", "bucket/outer/a.pcap", 1)])
    key = "bucket/out/exchanges/a.pcap"
    with pytest.raises(OutputRefused, match="holds the input"):
        bucket.require_outside([InputFile(f"s3://{key}", key, 1, store=Store("s3"))])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "_manifest is not JSON"),
        (b"[]", "_manifest is not of a job"),
        (b'{"files": 3}', "_manifest is not of a job"),
        (b'{"tables": {"nope": {}}}', "unknown table 'nope'"),
        (b'{"tables": {}, "files": ["../../x.parquet"]}', "jobs write no file"),
        (b'{"tables": {}, "files": ["connections/date=../part-0.parquet"]}', None),
        (b'{"tables": {}, "files": ["connections/date=1/api=../../part-0.parquet"]}', "write no"),
        (b'{"tables": {}, "files": ["connections/date=1/"]}', "jobs write no file"),
        (b'{"tables": {}, "applications": ["../x"]}', "invalid application"),
    ],
)
def test_a_manifest_cannot_make_a_job_delete_other_files(
    output: OutputDirectory, content: bytes, message: str | None
) -> None:
    put(output, MANIFEST, content)
    if message is None:
        assert output.examine(TABLES).files == {"connections/date=../part-0.parquet"}
        return
    with pytest.raises(OutputRefused, match=message):
        output.examine(TABLES)


def test_the_output_of_an_older_version(local: OutputDirectory) -> None:
    """Its manifest names no files, so they are not deleted."""
    put(local, MANIFEST, b'{"tables": {"connections": {"rows": 1}}}')
    put(local, "connections/date=2026-01-01/part-00000.parquet")
    with pytest.raises(OutputRefused, match="is not of a job"):
        write(local, "app-1")
    with pytest.raises(OutputRefused, match="lists no files"):
        check_files(local)


# -- the lock


def holder(application: str, token: str = "t") -> Holder:
    return Holder(application, "host", 7, token)


def test_one_job_at_a_time(output: OutputDirectory) -> None:
    with locked(output.store, output.root, holder("app-1")):
        with (
            pytest.raises(OutputInUse, match=r"_lock.*: application app-1 on host \(process 7\)"),
            locked(output.store, output.root, holder("app-1", "other")),
        ):
            raise AssertionError("locked twice")
        assert any(LOCK in name for name in names(output))
    with locked(output.store, output.root, holder("app-2")):
        pass
    assert names(output) == []


KILLED: Final = """
import os, sys
from kafkawire.spark.splitting.stores import Store
from kafkawire.spark.write.output_lock import Holder, locked
with locked(Store(), sys.argv[1], Holder("app-1", "host", 7, "t")):
    os.kill(os.getpid(), 9)
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run(command, cwd=ROOT, timeout=300, check=False).returncode == -9
    assert (tmp_path / LOCK).exists()
    with locked(Store(), str(tmp_path), holder("app-2")):
        assert json.loads((tmp_path / LOCK).read_text())["application"] == "app-2"


def test_the_lock_of_a_killed_job_in_a_store_is_named(remote: OutputDirectory) -> None:
    put(remote, f"{LOCK}/app-1-t", b"garbage")
    message = r"mock://bucket/out/_lock/app-1-t: another job is writing .* delete this object"
    with (
        pytest.raises(OutputInUse, match=message.replace("//", "/*")),
        locked(remote.store, remote.root, holder("app-2")),
    ):
        raise AssertionError("locked twice")
    assert names(remote) == [f"{LOCK}/app-1-t"]


# -- the check


def test_differences_are_named(output: OutputDirectory) -> None:
    first, second, third = write(output, "app-1")
    files = stores.filesystem(output.store)
    files.delete_file(f"{output.root}/{first.name}")
    put(output, second.name, b"short")
    put(output, third.name, bytes(third.bytes))
    found = {each.name: each.reason for each in check_files(output).differences}
    assert found[first.name] == "missing"
    assert found[second.name] == f"5 bytes, not {second.bytes}"
    assert found[third.name].startswith("not readable: ")


def test_other_rows_in_as_many_bytes(local: OutputDirectory) -> None:
    first, *_ = write(local, "app-1")
    manifest = Path(local.root, MANIFEST)
    listed = json.loads(manifest.read_text())
    listed["files"][0]["rows"] = 77
    manifest.write_text(json.dumps(listed))
    (difference,) = check_files(local).differences
    assert difference == (first.name, f"{first.rows} rows, not 77")


def test_the_check_of_the_command(local: OutputDirectory) -> None:
    """It needs neither Spark nor inputs."""
    with pytest.raises(OutputRefused, match="no manifest"):
        check(local.root)
    arguments = ["spark", "--check", "--output", local.root]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 2
    assert "no manifest" in ran.stderr
    first, *_ = write(local, "app-1")
    ran = CliRunner().invoke(app, arguments)
    assert (ran.exit_code, ran.stdout) == (
        0,
        f"{local.root}: 3 files, 3 rows, as in the manifest\n",
    )
    Path(local.root, first.name).unlink()
    ran = CliRunner().invoke(app, arguments)
    assert (ran.exit_code, ran.stdout) == (1, f"{first.name}: missing\n")
    assert check(local.root).differences == [(first.name, "missing")]
    assert CliRunner().invoke(app, [*arguments, "a.pcap"]).exit_code == 2


# -- what is checked before Spark starts


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        (["problems"], {"topics": "a"}, "option topics: invalid value 'problems'"),
        (["exchanges"], {"where": "nope == 1"}, "option where: "),
        (["exchanges"], {"region": "eu"}, "unknown option 'region'"),
    ],
)
def test_options_are_checked_before_spark_starts(
    tables: list[str], options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadOption, match=message):
        job.check_request(["a.pcap"], str(tmp_path), tables, parse(options))
    assert not [*tmp_path.iterdir()]


def test_the_command_checks_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("Spark starts")

    monkeypatch.setattr("kafkawire.spark.session", start)
    capture = str(FIXTURES / "captures" / "ck-txn.pcap")
    output = str(tmp_path / "out")
    watched = tmp_path / "watched"
    CommitLog(watched, ("exchanges",)).__exit__()
    for given, message in (
        ([capture, "-o", output, "--option", "region=eu"], "unknown option 'region'"),
        ([capture, "-o", output, "--table", "problems", "--option", "topics=a"], "option topics"),
        ([capture, "-o", str(watched)], "a watch writes to this directory"),
        ([str(tmp_path / "nope.pcap"), "-o", output], "nope.pcap: no such file"),
        (["--watch", str(tmp_path / "nope"), "-o", output], "no such directory"),
        (["--watch", str(tmp_path), "-o", output, "--option", "sets=file"], "option sets"),
        (["--watch", str(tmp_path), "-o", "s3://x/y"], "local or mounted"),
        (["--watch", str(tmp_path), "-o", str(tmp_path)], "holds the input"),
        (["--watch", str(tmp_path), "-o", output, "--option", "region=eu"], "unknown option"),
    ):
        ran = CliRunner().invoke(app, ["spark", *given], catch_exceptions=False)
        assert (ran.exit_code, message in ran.stderr) == (2, True), (given, ran.output)
    assert not Path(output).exists()


def test_files_by_uri(tmp_path: Path) -> None:
    """As Java writes them (`file:/path`), and as Python does."""
    path = tmp_path / "a.pcap"
    path.write_bytes(b"capture")
    for given in (f"file:{path}", f"file://{path}", f"file://localhost{path}"):
        assert [each.path for each in inputs([given])] == [str(path)]
        assert job.locate(given, parse({})).root == str(path)
    with pytest.raises(ValueError, match="not a host"):
        inputs(["file://a.pcap"])
