"""Directories, jars and ZIP archives of schemas: what is read of each, and what is refused."""

from __future__ import annotations

import os
import random
import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from kafkawire_codegen import __main__, files, generate, schemas_dir
from kafkawire_codegen.files import NoSchemas, UnreadableArchive, archive
from kafkawire_codegen.releases import of_sources
from kafkawire_codegen.schema import SchemaErrors, check_sources, load_sources
from tests.real.java import Installation

from .archives import CLIENTS, jar, pack, schema


def names(*sources: Path) -> list[str]:
    return [message.name for message in load_sources(sources)]


@pytest.mark.parametrize("folder", ["common/message/", "common/metadata/", "message/"])
def test_a_jar_of_kafka_has_its_schemas_in_folders_of_known_names(
    folder: str, tmp_path: Path
) -> None:
    made = jar(tmp_path / "kafka.jar", "B", "A", folder=folder)
    with zipfile.ZipFile(made, "a") as more:
        more.writestr("other/settings.json", "[]")
    assert names(made) == ["A", "B"]
    assert [f.file for f in files.read(made).schemas] == [
        f"{made}!{folder}A.json",
        f"{made}!{folder}B.json",
    ]


def test_of_another_archive_every_schema_is_read(tmp_path: Path) -> None:
    releases = '{ "releases": {}, "unstable": {} }'
    made = pack(
        tmp_path / "mine.zip",
        [
            ("A.json", schema("A")),
            ("deep/er/B.json", schema("B")),
            ("deep/er/releases.json", releases),
            ("META-INF/x.json", "[]"),
        ],
    )
    messages, errors = check_sources(made)
    assert [m.schema.name for m in messages] == ["A", "B"]
    assert errors == []
    found = of_sources(made)
    assert found is not None
    assert dict(found.ranges) == {}


def test_a_directory_of_jars_is_read_as_one_source(tmp_path: Path) -> None:
    jar(tmp_path / "kafka-clients-1.0.jar", "A")
    jar(tmp_path / "kafka-raft-1.0.jar", "B", folder="common/metadata/")
    pack(tmp_path / "jackson.jar", [("some/thing.json", "[]")])
    assert names(tmp_path) == ["A", "B"]
    (tmp_path / "C.json").write_text(schema("C"))
    assert names(tmp_path) == ["C"]


def test_jars_without_schemas_are_named(tmp_path: Path) -> None:
    pack(tmp_path / "jackson.jar", [("some/thing.json", "[]")])
    with pytest.raises(NoSchemas, match="nor in its jars"):
        files.read(tmp_path)


def test_one_file_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "A.json").write_text(schema("A"))
    assert names(tmp_path / "A.json") == ["A"]


def test_a_later_source_replaces_messages_of_the_same_name(tmp_path: Path) -> None:
    base = pack(
        tmp_path / "kafka.jar",
        [(f"{CLIENTS}A.json", schema("A", "Old", "Old")), (f"{CLIENTS}B.json", schema("B"))],
    )
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "A.json").write_text(schema("A", "New"))
    found = load_sources([base, tmp_path / "ours"])
    assert [(m.name, [f.name for f in m.fields]) for m in found] == [("A", ["New"]), ("B", [])]
    with pytest.raises(SchemaErrors, match="duplicate-field"):
        load_sources([tmp_path / "ours", base])


def test_a_message_stands_once_in_a_source(tmp_path: Path) -> None:
    jar(tmp_path / "one.jar", "A")
    jar(tmp_path / "two.jar", "A")
    with pytest.raises(SchemaErrors) as caught:
        load_sources(tmp_path)
    (error,) = caught.value.errors
    assert error.rule == "duplicate-message"
    assert error.file == f"{tmp_path}/two.jar!{CLIENTS}A.json"
    assert f"{tmp_path}/one.jar!{CLIENTS}A.json" in error.reason


def test_messages_of_several_sources_obey_the_rules_together(tmp_path: Path) -> None:
    head = ', "apiKey": 1'
    for name in ("ARequest", "BRequest"):
        text = schema(name, more=head).replace('"data"', '"request"')
        pack(tmp_path / f"{name}.jar", [(f"{CLIENTS}{name}.json", text)])
    with pytest.raises(SchemaErrors, match="duplicate-api-key"):
        load_sources([tmp_path / "ARequest.jar", tmp_path / "BRequest.jar"])


def test_an_error_names_archive_entry_line_and_column(tmp_path: Path) -> None:
    made = pack(tmp_path / "k.jar", [(f"{CLIENTS}A.json", schema("A", "F", "F"))])
    with pytest.raises(SchemaErrors) as caught:
        load_sources(made)
    assert str(caught.value).startswith(f"{made}!{CLIENTS}A.json:2:74: A.F: ")


def test_a_package_is_generated_from_archives(tmp_path: Path) -> None:
    made = jar(tmp_path / "k.jar", "A", "B")
    assert sorted(generate([made], tmp_path / "out", "mine").modules) == ["A", "B"]
    given = ["--schemas", str(made), "--schemas", str(made), "--package", "mine", "--out"]
    assert __main__.main([*given, str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "a.py").read_text() == (tmp_path / "out" / "a.py").read_text()


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


HOSTILE: dict[str, tuple[list[tuple[str | zipfile.ZipInfo, str | bytes]], str]] = {
    "parent": ([(f"{CLIENTS}../../A.json", "{}")], "not a plain path inside the archive"),
    "absolute": ([("/etc/message/A.json", "{}")], "not a plain path inside the archive"),
    "windows": ([("message/..\\A.json", "{}")], "not a plain path inside the archive"),
    "control": ([("message/\x1b[2J.json", "{}")], "not a plain path inside the archive"),
    "link": ([(link("message/A.json"), "/etc/passwd")], "links are not followed"),
    "bomb": ([("message/A.json", b" " * (5 << 20))], "has 5242880 bytes"),
    "twice": ([("message/A.json", "{}"), ("message/A.json", "[]")], "stands in the archive twice"),
    "empty": ([("org/K.class", b"")], "no schemas (*.json) in this archive"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_entry_is_refused(kind: str, tmp_path: Path) -> None:
    entries, reason = HOSTILE[kind]
    with pytest.raises(UnreadableArchive) as caught:
        files.read(pack(tmp_path / "evil.jar", entries))
    assert reason in str(caught.value.strerror)
    assert str(caught.value.filename).startswith(str(tmp_path / "evil.jar"))


def test_a_size_that_an_entry_conceals_is_still_bounded(tmp_path: Path) -> None:
    """What decompresses to more than the list of entries says is cut there, and its check fails."""
    made = pack(tmp_path / "evil.jar", [("message/A.json", b" " * 100_000)])
    data = made.read_bytes()
    small = (100).to_bytes(4, "little")
    made.write_bytes(data.replace((100_000).to_bytes(4, "little"), small))
    with pytest.raises(UnreadableArchive, match="Bad CRC-32"):
        files.read(made)


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MOST_ENTRIES", 3, "4 entries: 3 at most are read"),
        ("MOST_SCHEMAS", 1, "2 schemas: 1 at most are read"),
        ("LARGEST_TOTAL", 150, "its schemas have more than 150 bytes"),
        ("MOST_LISTED", 20, "its list of entries has more than 20 bytes"),
    ],
)
def test_an_archive_is_bounded(
    limit: str, value: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, limit, value)
    with pytest.raises(UnreadableArchive) as caught:
        files.read(jar(tmp_path / "k.jar", "A", "B"))
    assert reason in str(caught.value.strerror)


def test_only_what_jars_use_is_decompressed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("A.json", schema("A"))
    with pytest.raises(UnreadableArchive, match="compression method 14"):
        files.read(tmp_path / "a.zip")


def test_what_is_not_an_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jar").write_text("not an archive")
    with pytest.raises(UnreadableArchive, match="not a readable ZIP archive") as caught:
        files.read(tmp_path / "x.jar")
    assert not isinstance(caught.value, NoSchemas)
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "absent.jar")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableArchive, match="not a directory or a regular file"):
        files.read(tmp_path / "pipe")


@pytest.mark.fuzz
def test_a_damaged_archive_is_read_or_refused(tmp_path: Path) -> None:
    """Whatever bytes change or are missing: UnreadableArchive, or schemas."""
    whole = jar(tmp_path / "k.jar", "A", "B").read_bytes()
    rng = random.Random(17)
    read = 0
    for _ in range(600):
        data = bytearray(whole[: rng.choice((len(whole), rng.randrange(len(whole))))])
        for _ in range(rng.randrange(1, 4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "damaged.jar").write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read += len(files.read(tmp_path / "damaged.jar").schemas) > 0
            except UnreadableArchive:
                continue
    assert 0 < read < 600


def test_our_timeline_follows_from_the_jars_of_a_real_kafka(installation: Installation) -> None:
    """Our schemas, merged over the newest release: nothing changed since."""
    from kafkawire_codegen.merge.reading import named_source, read_releases
    from kafkawire_codegen.merge.timeline import timeline
    from kafkawire_codegen.merge.writing import files_of

    sources = [named_source(str(each)) for each in (installation.jars, schemas_dir())]
    assert f"{sources[0].release}." in f"{installation.kafka_version}."
    found = timeline(read_releases(sources))
    assert (found.renumbered, found.unmerged) == ((), ())
    assert found.changes == ()
    written = {file.path: file.text for file in files_of(found)}
    differ = [
        path.name for path in schemas_dir().glob("*.json") if path.read_text() != written[path.name]
    ]
    assert differ == []


def test_a_release_is_merged_into_our_timeline_with_a_small_difference(
    installation: Installation,
) -> None:
    """The newest release as if it came after trunk: nothing differs."""
    from kafkawire_codegen.merge.reading import named_source, read_releases
    from kafkawire_codegen.merge.timeline import timeline, with_texts_of

    sources = [named_source(str(schemas_dir())), named_source(f"9.0={installation.jars}")]
    ours = load_sources(schemas_dir())
    found, texts = with_texts_of(timeline(read_releases(sources)), ours)
    assert texts == []
    kept = {message.name: message for message in ours}
    assert [message.name for message in found.messages if message != kept[message.name]] == []
    assert found.unmerged == ()


def test_the_jars_of_a_real_kafka(installation: Installation) -> None:
    """The schemas of all modules: our own release has the same APIs, and no rule is broken."""
    from kafkawire_codegen.evolution import compare
    from kafkawire_codegen.releases import coverage

    found = load_sources(installation.jars)
    folders = {message.location.file.rpartition("!")[2].rpartition("/")[0] for message in found}
    assert folders == {"common/message", "common/metadata", "message"}
    table = of_sources(schemas_dir())
    assert table is not None
    release = installation.kafka_version.rpartition(".")[0]
    assert coverage(release, table, found).complete
    ours = table.at(release, load_sources(schemas_dir()))
    theirs = [m for m in found if m.type in ("request", "response") and m.valid_versions]
    for evolution in (compare(ours, theirs), compare(theirs, ours)):
        assert evolution.breaches == ()
        assert evolution.added == evolution.removed == ()
