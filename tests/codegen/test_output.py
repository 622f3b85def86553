"""Generated files are written, listed and removed; others are never touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkawire_codegen.output import LIST, File, write_listed


def test_files_are_written_and_listed(tmp_path: Path) -> None:
    files = [File("b/two.txt", "2"), File("one.txt", "1")]
    assert write_listed(files, tmp_path, "t") == 2
    assert (tmp_path / "b" / "two.txt").read_text() == "2"
    assert (tmp_path / LIST).read_text() == "t b/two.txt\nt one.txt\n"


def test_an_unchanged_file_keeps_its_time(tmp_path: Path) -> None:
    write_listed([File("one.txt", "1"), File("two.txt", "2")], tmp_path, "t")
    for name in ("one.txt", "two.txt", LIST):
        os.utime(tmp_path / name, (1, 1))
    assert write_listed([File("one.txt", "1"), File("two.txt", "3")], tmp_path, "t") == 1
    assert (tmp_path / "one.txt").stat().st_mtime == 1
    assert (tmp_path / LIST).stat().st_mtime == 1
    assert (tmp_path / "two.txt").stat().st_mtime > 1


def test_only_the_files_of_the_same_target_are_removed(tmp_path: Path) -> None:
    write_listed([File("one.txt", "1"), File("two.txt", "2")], tmp_path, "t")
    write_listed([File("other.txt", "3")], tmp_path, "u")
    (tmp_path / "mine.txt").write_text("mine")
    assert write_listed([File("one.txt", "1")], tmp_path, "t") == 1
    assert {p.name for p in tmp_path.iterdir()} == {"one.txt", "other.txt", "mine.txt", LIST}
    assert (tmp_path / LIST).read_text() == "t one.txt\nu other.txt\n"


def test_a_file_that_was_not_generated_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="was not generated"):
        write_listed([File("a.txt", ""), File("mine.txt", "theirs")], tmp_path, "t")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("path", ["../out.txt", "/out.txt", "a//b", "a/../../b", "", "."])
def test_no_path_leaves_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside"):
        write_listed([File(path, "")], tmp_path / "in", "t")


def test_a_forged_list_removes_nothing_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("stays")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / LIST).write_text(f"t ../outside.txt\nt {outside}\n")
    write_listed([File("one.txt", "1")], folder, "t")
    assert outside.read_text() == "stays"
    assert (folder / LIST).read_text() == "t one.txt\n"
