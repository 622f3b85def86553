"""The verdicts and exit codes of the job are those of `kafkawire decode`."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from kafkawire.spark import job, read, submit
from kafkawire.spark.describing import exit_code
from kafkawire.spark.options import parse
from kafkawire.spark.plan.verdicts import REFUSED, FileStatus
from kafkawire.spark.watch import Finished, Mode, WatchOptions, watch
from kafkawire.spark.write.output_directory import MANIFEST
from kafkawire_cli.main import app
from tests.capture.printing import printed, recorded
from tests.conftest import FIXTURES

from .conftest import counted, of_frame, rows_of

GOOD = FIXTURES / "captures" / "kcat-kf.pcap"
OTHER = FIXTURES / "captures" / "ck-txn.pcap"
WHOLE = GOOD.read_bytes()
PACKED = gzip.compress(WHOLE, mtime=0)
TEXT = b"this is not a capture at all"


def directory(path: Path) -> None:
    path.mkdir()
    (path / "readme.txt").write_bytes(TEXT)


def mixed_directory(path: Path) -> None:
    directory(path)
    (path / "a.pcap").write_bytes(WHOLE)


def vanished(path: Path) -> None:
    path.mkdir()
    (path / "gone.pcap").symlink_to("nowhere")


def nested(path: Path) -> None:
    path.mkdir()
    directory(path / "day=1")
    (path / "a.pcap").write_bytes(WHOLE)


def content(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


@dataclass(frozen=True)
class Case:
    """An input: what makes it, and the verdict that the manifest gives it (None: not listed)."""

    name: str
    make: Callable[[Path], object]
    status: FileStatus
    reason: str = ""
    offset: int | None = None


CASES = [
    Case("printed.txt", content(printed(recorded())), FileStatus.OK),
    Case("whole.pcap", content(WHOLE), FileStatus.OK),
    Case("header.pcap", content(WHOLE[:24]), FileStatus.OK),
    Case("cut.pcap", content(WHOLE[:-37]), FileStatus.TRUNCATED, "the file ends", 32457),
    Case("begun.pcap", content(WHOLE[:10]), FileStatus.TRUNCATED, "truncated file header", 10),
    Case("cut.pcap.gz", content(PACKED[:2000]), FileStatus.TRUNCATED, "the file ends"),
    Case(
        "corrupt.pcap.gz",
        content(PACKED[:1500] + b"\xff" * 8 + PACKED[1508:]),
        FileStatus.CORRUPT,
    ),
    Case("text.pcap", content(TEXT), FileStatus.NOT_A_CAPTURE, "not a capture file (starts with"),
    Case("three.pcap", content(WHOLE[:3]), FileStatus.NOT_A_CAPTURE, "not a capture file"),
    Case("empty.pcap", content(b""), FileStatus.NOT_A_CAPTURE, "empty"),
    Case("packed.pcap.gz", content(gzip.compress(TEXT)), FileStatus.NOT_A_CAPTURE, "not a capture"),
    Case("hollow.pcap.gz", content(gzip.compress(b"")), FileStatus.NOT_A_CAPTURE, "empty"),
    Case("broken.pcap.gz", content(b"\x1f\x8b\x08\xff" + bytes(20)), FileStatus.NOT_A_CAPTURE),
    Case("missing.pcap", lambda _: None, FileStatus.UNREADABLE, "no such file"),
    Case("folder", directory, FileStatus.UNREADABLE, "a directory without captures"),
    Case("void", Path.mkdir, FileStatus.UNREADABLE, "a directory without files"),
    Case("mixed", mixed_directory, FileStatus.IGNORED, "not a capture file"),
    Case("vanished", vanished, FileStatus.UNREADABLE, "No such file"),
    Case("nested", nested, FileStatus.IGNORED, "1 directory in it not read: day=1"),
    Case("denied.pcap", content(WHOLE), FileStatus.UNREADABLE, "Permission denied"),
]


@pytest.fixture(autouse=True)
def _denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deny what is called so, also to a superuser."""
    plain, by_number = Path.open, os.open

    def deny(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.name == "denied.pcap" and args[:1] == ("rb",):
            raise PermissionError(13, "Permission denied", str(self))
        return plain(self, *args, **kwargs)

    def deny_number(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_ACCMODE == os.O_RDONLY and str(path).endswith("/denied.pcap"):
            raise PermissionError(13, "Permission denied", str(path))
        return by_number(path, flags, *args, **kwargs)

    monkeypatch.setattr(Path, "open", deny)
    monkeypatch.setattr(os, "open", deny_number)


def run(*given: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in given])


def manifest(output: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((output / MANIFEST).read_text())
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "among others"])
def test_the_job_has_the_verdicts_of_decode(
    spark: SparkSession, case: Case, beside: bool, tmp_path: Path
) -> None:
    path, output = tmp_path / case.name, tmp_path / "out"
    case.make(path)
    given = [path]
    if beside:
        given.append(tmp_path / "good.pcap")
        shutil.copy(OTHER, given[-1])
    plain = run("decode", *given, "--format", "jsonl")
    strict = run("decode", *given, "--format", "jsonl", "--strict")
    made = run("spark", *given, "-o", output, "--strict")
    assert made.exit_code == strict.exit_code, made.output
    assert "Traceback" not in made.output
    if not output.exists():
        assert case.status in REFUSED
        assert plain.exit_code == strict.exit_code == 2
        assert not beside
        assert str(path) in made.stderr
        return
    assert exit_code(manifest(output), strict=False) == plain.exit_code
    entries = {entry["name"]: entry for entry in manifest(output)["inputs"]}
    mine = [each for name, each in entries.items() if Path(name).is_relative_to(path)]
    entry = next(each for each in mine if each["status"] == case.status.value)
    if case.status is FileStatus.OK:
        assert "reason" not in entry
    else:
        assert entry["reason"].startswith(case.reason)
        assert f"{entry['name']}: " in made.stderr
    if case.offset is not None:
        assert entry["offset"] == case.offset
    read_here = [
        name for name, each in entries.items() if each["status"] not in (*REFUSED, "ignored")
    ]
    table = output / "exchanges"  # not there where it has no rows
    found = of_frame(spark.read.parquet(str(table)).drop("date", "api")) if table.exists() else []
    assert counted(found) == counted(rows_of(read_here, "exchanges") if read_here else [])
    assert bool(found) or not beside


@pytest.mark.usefixtures("spark")
def test_the_script_of_clusters_does_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.pcap"
    text.write_bytes(TEXT)
    output = tmp_path / "out"
    assert submit.main([str(text), "-o", str(output)]) == 2
    assert capsys.readouterr().err == (
        f"{text}: not a capture file (starts with {TEXT[:8].hex(' ')})\n"
        f"kafkawire-spark: {text}: not a capture file (starts with {TEXT[:8].hex(' ')})\n"
    )
    assert submit.main([str(text), str(GOOD), "-o", str(output)]) == 2
    assert [each["status"] for each in manifest(output)["inputs"]] == ["ok", "not_a_capture"]
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(WHOLE[:-37])
    assert submit.main([str(cut), "-o", str(output)]) == 0
    assert submit.main([str(cut), "-o", str(output), "--strict"]) == 1


def test_all_problems_of_a_file_are_counted_and_the_worst_decides(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also if several splits find them."""
    unread = bytearray(WHOLE)
    unread[20] = 200  # a link type that nobody reads
    path = tmp_path / "link.pcap"
    path.write_bytes(unread[:-37])
    made = job.run(spark, [str(path)], str(tmp_path / "out"), ["problems"], parse({}))
    [entry] = made["inputs"]
    assert (entry["status"], entry["problems"], entry["offset"]) == ("truncated", 2, 32457)
    assert made["tables"]["problems"]["rows"] == 2
    path.write_bytes(unread)
    made = job.run(spark, [str(path)], str(tmp_path / "out"), ["problems"], parse({}))
    assert made["inputs"][0]["status"] == "unsupported"


def test_a_directory_without_captures_is_an_error_of_the_reader_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory(tmp_path / "folder")
    with pytest.raises(Exception, match=r"folder: a directory without captures"):
        read(spark, str(tmp_path / "folder"))
    with pytest.raises(Exception, match=r"folder: a directory without captures"):
        spark.read.format("kafkapcap").load(str(tmp_path / "folder")).collect()


def test_other_files_in_a_directory_are_ignored(spark: SparkSession, tmp_path: Path) -> None:
    mixed_directory(tmp_path / "mixed")
    wanted = counted(rows_of([str(tmp_path / "mixed" / "a.pcap")], "exchanges"))
    for frame in (
        read(spark, str(tmp_path / "mixed"), failOnError=True),
        spark.read.format("kafkapcap").option("failOnError", "true").load(str(tmp_path / "mixed")),
    ):
        assert counted(of_frame(frame)) == wanted


# Spark plans a data source in a Python of its own, which denies a superuser nothing.
@pytest.mark.parametrize("case", CASES[:-1], ids=lambda case: case.name)
def test_fail_on_error(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    """For the data source, which has no exit code, and for the job."""
    case.make(tmp_path / case.name)
    reader = spark.read.format("kafkapcap").option("failOnError", "true")
    if case.status in (FileStatus.OK, FileStatus.IGNORED):
        reader.load(str(tmp_path / case.name)).collect()
        return
    with pytest.raises(Exception, match=case.name):
        reader.load(str(tmp_path / case.name)).collect()
    with pytest.raises(Exception, match=case.name):
        job.run(
            spark, [str(tmp_path / case.name)], str(tmp_path / "out"), ["exchanges"],
            parse({"failOnError": "true"}),
        )  # fmt: skip


# -- a watch


def test_a_watch_has_the_same_verdicts_and_continues(spark: SparkSession, tmp_path: Path) -> None:
    directory_, output = tmp_path / "in", tmp_path / "out"
    directory_.mkdir()
    shutil.copy(GOOD, directory_ / "good.pcap")
    shutil.copy(GOOD, directory_ / "denied.pcap")
    (directory_ / "text.pcap").write_bytes(TEXT)
    (directory_ / "readme.txt").write_bytes(TEXT)
    logged: list[str] = []

    def once(**more: Any) -> int:
        return watch(
            spark, directory_, output, ["exchanges", "problems"], parse({}),
            WatchOptions(Finished.RENAMED), mode=Mode.ONCE, clock=lambda: 0.0, sleep=lambda _: None,
            log=logged.append, **more,
        )  # fmt: skip

    assert once() == 2
    for name, reason in (
        ("denied.pcap", "Permission denied"),
        ("text.pcap", "not a capture file"),
        ("readme.txt", "ignored: not a capture file"),
    ):
        assert [line for line in logged if f"{name}: {reason}" in line], name
    taken = [
        file
        for path in sorted((output / "_watch" / "commits").glob("*.json"))
        for file in json.loads(path.read_text())["files"]
    ]
    assert {Path(file["name"]).name: file["status"] for file in taken} == {
        "good.pcap": "ok",
        "text.pcap": "not_a_capture",
    }
    (directory_ / "denied.pcap").unlink()
    assert once() == 0  # what was refused before is not refused again
    (directory_ / "cut.pcap").write_bytes(WHOLE[:-37])
    assert once(strict=True) == 1
    assert once(strict=True) == 0
    frame = spark.read.parquet(str(output / "exchanges"))
    assert frame.count() >= len(rows_of([str(GOOD)], "exchanges"))
