"""Files appear under their names only when they are complete."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from kafkawire_codegen.whole_files import whole_file, whole_files, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Failure(Exception):
    """What ends a block early."""


@pytest.mark.parametrize("ending", [Failure, KeyboardInterrupt, SystemExit, OSError])
def test_after_a_failure_all_files_are_as_before(
    ending: type[BaseException], tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("before")

    def write() -> None:
        with whole_files([old, new]) as written:
            for path in (old, new):
                written[path].write_text("half")
            raise ending

    with pytest.raises(ending):
        write()
    assert names(tmp_path) == ["old"]
    assert old.read_text() == "before"


def test_until_the_end_a_file_is_as_before(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with whole_file(file) as written:
        written.write_text("after")
        assert file.read_text() == "before"
        assert written.parent == tmp_path
    assert file.read_text() == "after"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_mode_of_any_created_file(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "created").write_text("")
        write_whole(tmp_path / "whole", b"")
        write_whole(tmp_path / "private", b"", private=True)
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode for name in names(tmp_path)}
    assert modes["whole"] == modes["created"]
    assert stat.S_IMODE(modes["private"]) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o666, 0o755])
def test_a_replaced_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    file.chmod(mode)
    write_whole(file, b"after")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    write_whole(file, b"after", private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_target_of_links_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to("file")
    (tmp_path / "link").symlink_to(tmp_path / "data" / "link")
    for text in (b"created", b"replaced"):  # at first the links point to nothing
        write_whole(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "data" / "link").is_symlink()
        assert (tmp_path / "data" / "file").read_bytes() == text
    assert names(tmp_path) == ["data", "link"]
    assert names(tmp_path / "data") == ["file", "link"]


def test_a_circle_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="one"):
        write_whole(tmp_path / "one", b"")


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"rows", private=True)
    reader.join()
    assert got == [b"rows"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_an_open_descriptor_is_written_in_place(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as opened:
        link = tmp_path / "link"
        link.symlink_to(f"/dev/fd/{opened.fileno()}")
        for path in (Path(f"/dev/fd/{opened.fileno()}"), link):
            with whole_file(path) as written:
                assert written == path
            write_whole(path, b"rows")
        assert os.path.sameopenfile(opened.fileno(), os.open(file, os.O_RDONLY))
    assert file.read_bytes() == b"rows"
    assert names(tmp_path) == ["file", "link"]


def test_errors_name_the_file_as_given(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as failed:
        write_whole(missing, b"")
    assert failed.value.filename == str(missing)
    with pytest.raises(IsADirectoryError) as failed_directory:
        write_whole(tmp_path, b"")
    assert failed_directory.value.filename == str(tmp_path)
    file = tmp_path / "file"

    def write() -> None:
        with whole_file(file) as written:
            written.unlink()
            written.read_bytes()

    with pytest.raises(FileNotFoundError) as removed:
        write()
    assert removed.value.filename == str(file)


def test_another_thread_may_write(tmp_path: Path) -> None:
    thread = threading.Thread(target=write_whole, args=(tmp_path / "file", b"rows"))
    thread.start()
    thread.join()
    assert (tmp_path / "file").read_bytes() == b"rows"


def test_long_names(tmp_path: Path) -> None:
    file = tmp_path / ("é" * 120 + ".parquet")
    write_whole(file, b"rows")
    assert file.read_bytes() == b"rows"


def test_files_of_killed_processes_stay(tmp_path: Path) -> None:
    left = tmp_path / f".file.{os.getpid()}-0.part"
    left.write_bytes(b"half")
    write_whole(tmp_path / "file", b"rows")
    assert contents_of(tmp_path) == {left.name: b"half", "file": b"rows"}


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
