"""Generated files are written, listed and removed; others are never touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkawire_codegen.output import LIST, File, write, write_listed


def test_files_are_written_and_listed(tmp_path: Path) -> None:
    files = [File("b/two.txt", "2"), File("one.txt", "1")]
    assert write_listed(files, tmp_path, "t") == ("b/two.txt", "one.txt")
    assert (tmp_path / "b" / "two.txt").read_text() == "2"
    assert (tmp_path / LIST).read_text() == "t b/two.txt\nt one.txt\n"


def test_an_unchanged_file_keeps_its_time(tmp_path: Path) -> None:
    write_listed([File("one.txt", "1"), File("two.txt", "2")], tmp_path, "t")
    for name in ("one.txt", "two.txt", LIST):
        os.utime(tmp_path / name, (1, 1))
    assert write_listed([File("one.txt", "1"), File("two.txt", "3")], tmp_path, "t") == ("two.txt",)
    assert (tmp_path / "one.txt").stat().st_mtime == 1
    assert (tmp_path / LIST).stat().st_mtime == 1
    assert (tmp_path / "two.txt").stat().st_mtime > 1


def test_only_the_files_of_the_same_target_are_removed(tmp_path: Path) -> None:
    write_listed([File("one.txt", "1"), File("two.txt", "2")], tmp_path, "t")
    write_listed([File("other.txt", "3")], tmp_path, "u")
    (tmp_path / "mine.txt").write_text("mine")
    assert write_listed([File("one.txt", "1")], tmp_path, "t") == ("two.txt",)
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


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_check_names_what_would_change_and_changes_nothing(tmp_path: Path) -> None:
    write_listed([File("a.txt", "1"), File("b.txt", "2"), File("c.txt", "3")], tmp_path, "t")
    before = state(tmp_path)
    files = [File("a.txt", "1"), File("b.txt", "new"), File("in/d.txt", "4")]
    names = write_listed(files, tmp_path, "t", check=True)
    assert names == ("b.txt", "c.txt", "in/d.txt"), "changed, removed, added"
    assert state(tmp_path) == before
    assert write_listed(files, tmp_path, "t") == names
    assert write_listed(files, tmp_path, "t", check=True) == ()


def test_a_check_of_a_folder_that_does_not_exist_creates_none(tmp_path: Path) -> None:
    out = tmp_path / "out"
    mark = "# Generated: do not edit.\n"
    assert write([File("a.py", mark)], out, check=True) == ("a.py",)
    assert write_listed([File("a.txt", "1")], out, "t", check=True) == ("a.txt",)
    assert not out.exists()


def test_a_check_of_a_package_names_modules_that_are_no_longer_generated(tmp_path: Path) -> None:
    mark = "# Generated: do not edit.\n"
    write([File("a.py", mark), File("b.py", mark)], tmp_path)
    (tmp_path / "mine.py").write_text("x = 1\n")
    before = state(tmp_path)
    assert write([File("a.py", f"{mark}x = 1\n")], tmp_path, check=True) == ("a.py", "b.py")
    assert state(tmp_path) == before
