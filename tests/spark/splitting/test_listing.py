"""The files of paths, directories, patterns and URIs; pickling."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from kafkawire.spark.splitting import END, Edge, InputFile, inputs, plan, probe, read
from kafkawire.spark.splitting.listing import matches

from ...capture.wire import Packet, pcap


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.pcap", "a.pcap", "_SUCCESS", ".hidden.pcap", "_temporary/x.pcap", "sub/c.pcap"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pcap([Packet(bytes(60))]))
    return tmp_path


def names(files: Iterable[InputFile], root: Path) -> list[str]:
    return [str(Path(file.name).relative_to(root)) for file in files]


def test_directories_and_patterns(tree: Path) -> None:
    assert names(inputs([tree]), tree) == ["a.pcap", "b.pcap"]
    assert names(inputs([tree], recursive=True), tree) == ["a.pcap", "b.pcap", "sub/c.pcap"]
    assert names(inputs([f"{tree}/*.pcap"]), tree) == ["a.pcap", "b.pcap"]
    assert names(inputs([f"{tree}/**/?.pcap"]), tree) == [
        "_temporary/x.pcap",
        "a.pcap",
        "b.pcap",
        "sub/c.pcap",
    ]
    assert names(inputs([tree / "b.pcap", f"{tree}/[ab].pcap"]), tree) == ["b.pcap", "a.pcap"]


@pytest.mark.parametrize("form", ["{}", "file:{}"])
def test_what_is_not_read_of_a_directory_is_named(form: str, tree: Path) -> None:
    unread: list[tuple[str, str]] = []
    where = form.format(tree)
    listed = inputs([where], ignored=lambda *each: unread.append(each))
    assert [Path(file.name).name for file in listed] == ["a.pcap", "b.pcap"]
    [(directory, what)] = unread
    assert directory.endswith(str(tree))
    assert what == "1 directory in it not read: sub"
    unread.clear()
    inputs([where], recursive=True, ignored=lambda *each: unread.append(each))
    inputs([f"{where}/*.pcap"], ignored=lambda *each: unread.append(each))
    assert not unread
    for each in ("a.pcap", "b.pcap"):
        (tree / each).unlink()
    with pytest.raises(FileNotFoundError, match="without files; 1 directory in it not read: sub"):
        inputs([where])


def test_a_file_that_vanished_from_a_directory_is_listed(tree: Path) -> None:
    (tree / "gone.pcap").symlink_to("nowhere")
    (tree / "gone").symlink_to("nowhere")
    assert names(inputs([tree]), tree) == ["a.pcap", "b.pcap", "gone.pcap"]


def test_a_name_is_what_the_command_line_prints(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    (file,) = inputs(["./sub/../a.pcap"])
    assert file.name == str(Path("./sub/../a.pcap"))
    assert (file.size, file.modified_ns) == (100, (tree / "a.pcap").stat().st_mtime_ns)
    (same,) = inputs([f"file://{tree}/a.pcap"])
    assert same.name == str(tree / "a.pcap")
    monkeypatch.chdir("/")
    assert probe(plan(file, 50)[0]).packets == 1


def test_a_name_with_the_signs_of_a_pattern_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "a[1].pcap"
    path.write_bytes(pcap([]))
    assert [file.name for file in inputs([str(path)])] == [str(path)]


@pytest.mark.parametrize("given", ["none.pcap", "*.none", "sub/none/", "empty"])
def test_missing_files_are_named(given: str, tree: Path) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=re.escape(str(tree / given).rstrip("/"))):
        inputs([f"{tree}/{given}"])


def test_an_unsupported_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ValueError, match=r"ftpx://: .*kafkawire\[fsspec\]"):
        inputs(["ftpx://host/a.pcap"])


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/b.pcap", "a/*.pcap", True),
        ("a/c/b.pcap", "a/*.pcap", False),
        ("a/c/d/b.pcap", "a/**/*.pcap", True),
        ("a/b.pcap", "a/**/*.pcap", True),
        ("a/.b.pcap", "a/*.pcap", False),
        ("a/.b.pcap", "a/.*.pcap", True),
        ("a/day=1/b.pcap", "a/day=[12]/?.pcap", True),
        ("A/b.pcap", "a/*", False),
    ],
)
def test_patterns_of_stores(path: str, pattern: str, expected: bool) -> None:
    assert matches(path.split("/"), pattern.split("/")) is expected


def test_splits_and_proofs_pickle(tree: Path) -> None:
    (file,) = inputs([tree / "a.pcap"])
    (split,) = plan(file, 1000)
    assert pickle.loads(pickle.dumps(split)) == split
    assert len(pickle.dumps(split)) < 2000
    assert hash(split) == hash(pickle.loads(pickle.dumps(split)))
    proof = probe(split)
    assert pickle.loads(pickle.dumps(proof)) == proof
    assert (proof.start, proof.end, proof.packets) == (Edge(24), Edge(END), 1)


def test_a_file_that_was_deleted_or_truncated(tree: Path) -> None:
    (file,) = inputs([tree / "a.pcap"])
    (split,) = plan(file, 1000)
    (tree / "a.pcap").write_bytes(pcap([Packet(bytes(60))])[:60])
    assert [problem.reason for problem in probe(split).problems] == [
        "the file ends 36 bytes into a packet"
    ]
    (tree / "a.pcap").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.pcap"):
        list(read(split))


def test_split_bytes_must_be_positive(tree: Path) -> None:
    (file,) = inputs([tree / "a.pcap"])
    with pytest.raises(ValueError, match="split_bytes 0"):
        plan(file, 0)
