"""Releases merged into one timeline: every version keeps its layout, and what cannot is listed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.files import RELEASES, SchemaFile
from kafkawire_codegen.merge.changes import changes
from kafkawire_codegen.merge.combine import Unmergeable, combine
from kafkawire_codegen.merge.normal import cut, normal, to_schema
from kafkawire_codegen.merge.reading import NamelessRelease, named_source, read_releases
from kafkawire_codegen.merge.text import schema_text
from kafkawire_codegen.merge.timeline import Release, Timeline, timeline, with_texts_of
from kafkawire_codegen.merge.writing import files_of, write_timeline
from kafkawire_codegen.releases import read
from kafkawire_codegen.schema import MessageSchema, SchemaErrors, check_text, load_file
from kafkawire_codegen.versions import Versions
from tests.fuzzing import SOAK
from tests.schemas import schemas

from .archives import jar, pack, schema
from .written import field, message, struct, tagged


def reread(text: str, folder: Path) -> MessageSchema:
    name = json.loads(text.partition("{")[1] + text.partition("{")[2])["name"]
    (folder / f"{name}.json").write_text(text, "utf-8")
    return load_file(folder / f"{name}.json")


def without_layout_changes(older: MessageSchema, newer: MessageSchema) -> bool:
    return not list(changes(older, newer, ("older", "newer")))


def within(schema_: MessageSchema, versions: Versions) -> MessageSchema:
    """Cut a message to some versions, as Kafka does when it removes old ones."""
    form = normal(replace(schema_, valid_versions=versions))
    return to_schema(form)


def merged(*releases: Sequence[MessageSchema]) -> Timeline:
    return timeline([Release(f"{n}.0", list(each)) for n, each in enumerate(releases, 1)])


def one(*forms: MessageSchema) -> MessageSchema:
    """Merge forms of one message, oldest first, of which nothing is lost."""
    result = merged(*([form] for form in forms))
    assert result.unmerged == ()
    (found,) = result.messages
    for form in forms:
        both = form.valid_versions & found.valid_versions
        assert both == form.valid_versions
    assert check_text(SchemaFile("M.json", schema_text(found).encode())) == []
    return found


def paths(schema_: MessageSchema) -> list[tuple[str, str]]:
    """List the fields of a message and their versions, as they are written."""
    written = json.loads(schema_text(schema_))
    return [(f["name"], f["versions"]) for f in written["fields"]]


# -- our own schemas: the form of the text, and merging back what was cut


def test_our_own_timeline_is_written_as_it_is_byte_for_byte() -> None:
    found = timeline(read_releases([named_source(str(schemas_dir()))]))
    assert (found.changes, found.renumbered, found.unmerged) == ((), (), ())
    written = {file.path: file.text for file in files_of(found)}
    ours = {path.name: path.read_text("utf-8") for path in schemas_dir().glob("*.json")}
    assert written.keys() == ours.keys()
    assert [name for name in ours if written[name] != ours[name]] == []


def test_our_own_releases_are_merged_to_what_they_were_cut_from() -> None:
    table = read(schemas_dir() / RELEASES)
    releases = [Release(name, table.at(name, list(schemas()))) for name in table.ranges]
    found = timeline(releases)
    assert (found.changes, found.renumbered, found.unmerged) == ((), (), ())
    ours = {m.name: m for m in schemas() if m.type in ("request", "response")}
    assert [m.name for m in found.messages] == sorted(ours)
    for message_ in found.messages:
        whole = ours[message_.name]
        assert message_.valid_versions == whole.valid_versions, message_.name
        assert without_layout_changes(whole, message_), message_.name
    assert found.releases.unstable == table.unstable
    assert found.releases.ranges == table.ranges


SPLIT = [schema_ for schema_ in schemas() if len(schema_.valid_versions) > 1]


def split_and_merged(whole: MessageSchema) -> None:
    """Cut off the older versions at each place, with and without common versions."""
    low, high = whole.valid_versions.low, whole.valid_versions.high
    for last in range(low, high):
        for first in {last + 1, max(low, last - 1)}:
            older, newer = (within(whole, Versions(*ends)) for ends in ((low, last), (first, high)))
            found = one(older, newer)
            assert found.valid_versions == whole.valid_versions
            assert found.flexible_versions & found.valid_versions == (
                whole.flexible_versions & whole.valid_versions
            )
            assert without_layout_changes(whole, found), (whole.name, last, first)


@pytest.mark.parametrize(
    "whole", [s for s in SPLIT if zlib.crc32(s.name.encode()) % 10 == 0], ids=lambda s: s.name
)
def test_versions_that_were_cut_off_are_merged_back(whole: MessageSchema) -> None:
    split_and_merged(whole)


@pytest.mark.fuzz
def test_versions_of_every_message_that_were_cut_off_are_merged_back() -> None:
    for whole in SPLIT if SOAK > 1 else SPLIT[::10]:
        split_and_merged(whole)


# -- single changes between two releases

A, B, C = field("A"), field("B"), field("C")


def test_a_field_that_was_removed_keeps_its_place_and_its_versions() -> None:
    older = message(A, B, C, valid="0-2", flexible="none")
    newer = message(A, C, valid="2-4", flexible="none")
    both = message(A, field("B", versions="0-1"), C, valid="0-4", flexible="none")
    found = merged([older], [newer])
    assert without_layout_changes(both, found.messages[0])
    assert paths(found.messages[0]) == [("A", "0+"), ("B", "0-1"), ("C", "0+")]
    (change,) = found.changes
    assert change.comment == (
        "Version 2 changed in place between 1.0 and 2.0: lost B. The later layout is described."
    )


def test_a_field_that_was_renamed_has_its_new_name() -> None:
    older = message(A, field("Old"), valid="0-2")
    newer = message(A, field("New"), valid="2-4")
    assert paths(one(older, newer)) == [("A", "0+"), ("New", "0+")]


def test_a_message_that_was_renamed_has_its_new_name_and_a_comment() -> None:
    head = '"type": "request", "apiKey": 7'
    older = message(A, name="OldRequest", head=head, valid="0-1")
    newer = message(A, name="NewRequest", head=head, valid="1-2")
    found = merged([older], [newer])
    assert [(m.name, str(m.valid_versions)) for m in found.messages] == [("NewRequest", "0-2")]
    assert found.comments["NewRequest"] == ("Formerly named OldRequest.",)
    assert {n: {a: str(v) for a, v in r.items()} for n, r in found.releases.ranges.items()} == {
        "1.0": {"New": "0-1"},
        "2.0": {"New": "1-2"},
    }


def test_a_message_of_one_release_only_is_kept() -> None:
    gone = message(A, name="Gone")
    removed = message(name="Removed", valid="none")
    found = merged([gone, message(B, name="Removed")], [removed, message(C)])
    assert [m.name for m in found.messages] == ["Gone", "M", "Removed"]


def test_a_struct_that_became_a_common_one_is_the_same_struct() -> None:
    inline = message(struct("S", "[]T", A, B), valid="0-1")
    common = '{ "name": "T", "versions": "0+", "fields": [' + f"{A}, {C}] }}"
    newer = message(field("S", "[]T"), field("U", "T"), valid="2-3", structs=common)
    found = one(inline, newer)
    (shared,) = found.common_structs
    assert [(f.name, str(f.versions)) for f in shared.fields] == [
        ("A", "0-3"),
        ("B", "0-1"),
        ("C", "2-3"),
    ]


def test_another_struct_of_the_same_name_gets_a_name_of_its_own() -> None:
    older = message(struct("Old", "[]T", A), valid="0-1")
    newer = message(struct("New", "[]T", B), valid="2-3")
    found = one(older, newer)
    assert {f.name: f.type for f in found.fields} == {"Old": "[]TV1", "New": "[]T"}


def test_tags_and_null_are_those_of_each_version() -> None:
    nullable = '"nullableVersions": "2+"'
    older = message(field("A", "string"), tagged("B", 0), valid="0-1", flexible="0+")
    newer = message(
        field("A", "string", more=nullable), tagged("B", 0), tagged("C", 1), valid="2-3"
    )
    newer = replace(newer, flexible_versions=Versions(0, 32767))
    found = one(older, newer)
    written = {f["name"]: f for f in json.loads(schema_text(found))["fields"]}
    assert written["A"]["nullableVersions"] == "2+"
    assert (written["B"]["versions"], written["B"]["taggedVersions"]) == ("1+", "1+")
    assert (written["C"]["taggedVersions"], written["C"]["tag"]) == ("2+", 1)


def test_records_that_were_described_as_bytes_are_records() -> None:
    older = message(field("A", "bytes"), valid="0-1")
    newer = message(field("A", "records"), valid="1-2")
    assert one(older, newer).fields[0].type == "records"


def test_header_versions_are_those_of_each_version() -> None:
    head = '"type": "request", "apiKey": 1, "headerVersions": {}'
    older = message(name="ARequest", valid="0-2", head=head.format('{"0": "0", "1+": "2"}'))
    newer = message(name="ARequest", valid="2-3", head='"type": "request", "apiKey": 1')
    found = json.loads(schema_text(one(older, newer)))
    assert found["headerVersions"] == {"0": "0", "1+": "2"}
    older = message(name="ARequest", valid="0-2", head=head.format('{"0": "1", "1+": "2"}'))
    assert "headerVersions" not in json.loads(schema_text(one(older, newer)))


def test_the_newest_release_says_what_is_unstable() -> None:
    unstable = '"type": "request", "apiKey": 1, "latestVersionUnstable": true'
    head = '"type": "request", "apiKey": 1'
    first = message(name="ARequest", valid="0-1", head=unstable)
    second = message(name="ARequest", valid="1-1", head=head)
    third = message(name="ARequest", valid="1-2", head=unstable)
    found = merged([first], [second], [third])
    assert found.messages[0].latest_version_unstable
    assert {n: {a: str(v) for a, v in r.items()} for n, r in found.releases.unstable.items()} == {
        "1.0": {"A": "1"},
        "3.0": {"A": "2"},
    }
    assert not one(first, second).latest_version_unstable


@pytest.mark.parametrize(
    ("older", "newer", "reason"),
    [
        ((A,), (field("A", "int64"),), "M.A was int32, and is int64"),
        ((A,), (field("A", "[]int32"),), "M.A was int32, and is []int32"),
        ((struct("S", "T", A),), (field("S", "string"),), "M.S was T, and is string"),
        ((A, B), (B, A), "M.B is at another place in its struct"),
        ((tagged("A", 0),), (tagged("B", 0), tagged("A", 1)), "M.A had tag 0, and has tag 1"),
        (
            (tagged("A", 0),),
            (tagged("B", 0, versions="2+"),),
            "M.A: tagged versions cannot end: 1+ is right, not 1",
        ),
        (
            (field("A", versions="0"),),
            (field("A", versions="2+"),),
            "versions of M.A: 2-3 and 0 have a gap between them",
        ),
    ],
)
def test_what_one_schema_cannot_describe_is_listed(
    older: tuple[str, ...], newer: tuple[str, ...], reason: str
) -> None:
    found = merged([message(*older)], [message(*newer, valid="2-3")])
    (unmerged,) = found.unmerged
    assert str(unmerged) == f"M 0-1 of 1.0: not merged: {reason}"
    assert [str(m.valid_versions) for m in found.messages] == ["2-3"]


@pytest.mark.parametrize(
    ("older", "newer", "reason"),
    [
        (("0-1", "1+"), ("4-5", "1+"), "valid versions: 4-5 and 0-1 have a gap between them"),
        (("0-1", "1+"), ("2-3", "none"), "of the versions 0-3, 1 are flexible"),
    ],
)
def test_versions_of_a_message_that_do_not_fit_are_listed(
    older: tuple[str, str], newer: tuple[str, str], reason: str
) -> None:
    forms = [message(A, valid=valid, flexible=flexible) for valid, flexible in (older, newer)]
    (unmerged,) = merged(forms[:1], forms[1:]).unmerged
    assert unmerged.reason == reason
    with pytest.raises(Unmergeable):
        combine(normal(forms[1]), normal(forms[0]), Versions(0, 1))


def test_a_layout_that_changed_in_place_is_listed_with_both_layouts() -> None:
    older = message(A, struct("S", "[]T", B, C), tagged("D", 0))
    newer = message(
        field("A", "string", more='"nullableVersions": "0+"'), struct("S", "[]T", B), tagged("E", 0)
    )
    found = merged([older], [newer])
    first, second = found.changes
    assert (first.message, first.version, first.older, first.newer) == ("M", 0, "1.0", "2.0")
    assert list(second.lines()) == [
        "M 1: changed in place between 1.0 and 2.0, the later wins",
        "  - A: int32",
        "  - S.C: int32",
        "  - D: int32, tag 0",
        "  + A: nullable string",
        "  + E: int32, tag 0",
    ]
    assert str(first.before[0]) == "A: int32"
    assert found.comments["M"][1] == (
        "Version 1 changed in place between 1.0 and 2.0: gained E (tag 0); lost S.C, D (tag 0); "
        "changed A. The later layout is described."
    )


def test_an_api_key_that_changed_is_listed() -> None:
    forms = [message(A, head=f'"type": "metadata", "apiKey": {key}') for key in (5, 3)]
    found = merged(forms[:1], forms[1:])
    (renumbered,) = map(str, found.renumbered)
    assert renumbered == "M: the api key was 5, and is 3, between 1.0 and 2.0"
    assert found.messages[0].api_key == 3


# -- texts


def test_texts_are_kept_and_cannot_end_a_comment_or_a_string(tmp_path: Path) -> None:
    about = 'x", "a": 1 } */ // \\ \u2028 \x07 end'
    older = message(field("A", more=f'"about": {json.dumps(about)}'), valid="0")
    newer = message(A, valid="1")
    found = one(older, newer)
    assert found.fields[0].about == about
    text = schema_text(found, ["one\nline } \x1b[2J", "* /"])
    assert text.splitlines()[0].startswith("// one line }")
    assert reread(text, tmp_path).fields[0].about == about


def test_words_of_another_directory_are_taken_where_the_field_is_the_same() -> None:
    theirs = [field(name, more=f'"about": "Theirs of {name}."') for name in ("A", "Renamed", "New")]
    ours = [field("A", more='"about": "Ours."'), field("B"), field("Gone", more='"about": "Old."')]
    found = merged([message(*theirs, valid="1-2")])
    words = message(*ours[:2], valid="0-1")
    reworded, review = with_texts_of(found, [words])
    assert {f.name: f.about for f in reworded.messages[0].fields} == {
        "A": "Ours.",
        "Renamed": "Theirs of Renamed.",
        "New": "Theirs of New.",
    }
    assert review == ["M.Renamed", "M.New"]
    same = message(*theirs[:2], valid="1-2")
    reworded, review = with_texts_of(merged([same]), [words])
    assert {f.name: f.about for f in reworded.messages[0].fields} == {"A": "Ours.", "Renamed": ""}
    assert review == []
    assert with_texts_of(merged([message(A, name="Another")]), [words])[1] == ["Another"]


def test_a_message_that_differs_by_texts_alone_stays_as_it_is() -> None:
    """Also the order of fields that share no version, and defaults that are written out."""
    ours = message(field("Old", versions="0"), field("New", versions="1+", more='"about": "Ours."'))
    default = '"default": "0", "about": "Theirs."'
    theirs = message(field("New", versions="1+", more=default), field("Old", versions="0"))
    assert with_texts_of(merged([theirs]), [ours])[0].messages == (ours,)


# -- sources and files


def test_a_release_is_named_by_its_jar_or_on_the_command_line(tmp_path: Path) -> None:
    made = jar(tmp_path / "kafka-clients-4.3.1.jar", "A")
    assert named_source(str(made)).release == "4.3"
    assert named_source(f"new={made}") == ("new", made)
    (tmp_path / "libs").mkdir()
    for name in ("kafka-clients-3.9.0-rc1", "kafka-raft-3.9.0-rc1"):
        jar(tmp_path / "libs" / f"{name}.jar", "A")
    assert named_source(str(tmp_path / "libs")).release == "3.9"
    version = ("kafka/kafka-version.properties", "commitId=1\nversion=4.4.0\n")
    plain = pack(tmp_path / "clients.jar", [version, ("message/A.json", schema("A"))])
    assert named_source(str(plain)).release == "4.4"
    (tmp_path / RELEASES).write_text('{ "releases": {}, "unstable": {} }')
    assert named_source(str(tmp_path)).release is None


def test_a_release_without_a_name_is_refused(tmp_path: Path) -> None:
    made = jar(tmp_path / "mine.jar", "A")
    for source in (str(made), str(tmp_path)):
        with pytest.raises(NamelessRelease, match="its release is unknown"):
            named_source(source)
    with pytest.raises(NamelessRelease, match="absent: no such file or directory"):
        named_source(str(tmp_path / "absent"))
    for version in ("4.2.0", "4.3.0"):
        jar(tmp_path / f"kafka-clients-{version}.jar", "A")
    with pytest.raises(NamelessRelease, match="of several releases"):
        named_source(str(tmp_path))


def test_parts_of_a_release_define_a_message_once(tmp_path: Path) -> None:
    parts = [jar(tmp_path / f"{name}-1.0.jar", name) for name in ("A", "B")]
    (release,) = read_releases([named_source(str(part)) for part in parts])
    assert [m.name for m in release.messages] == ["A", "B"]
    with pytest.raises(SchemaErrors, match=r"A is defined in .* already"):
        read_releases([named_source(str(part)) for part in (*parts, parts[0])])
    for name in ("CRequest", "DRequest"):
        text = schema(name, more=', "apiKey": 5').replace('"data"', '"request"')
        parts.append(pack(tmp_path / f"{name}-1.0.jar", [(f"message/{name}.json", text)]))
    with pytest.raises(SchemaErrors, match="5 is the key of CRequest already"):
        read_releases([named_source(str(part)) for part in parts])


def test_the_next_release_is_merged_into_a_timeline(tmp_path: Path) -> None:
    """A numbered release comes before what is not numbered; comments and words are kept."""
    head = '"type": "request", "apiKey": 1'
    first = message(A, name="ARequest", valid="0-1", head=head)
    (tmp_path / "ARequest.json").write_text(schema_text(first, ["Ours."]))
    text = '{ "releases": { "1.0": { "A": "0" }, "trunk": { "A": "0-1" } }, "unstable": {} }'
    (tmp_path / RELEASES).write_text(text)
    timeline_, *_ = read_releases([named_source(str(tmp_path))])
    next_ = message(A, field("B", versions="2+"), name="ARequest", valid="1-2", head=head)
    found = timeline([timeline_, Release("1.1", [next_])])
    assert list(found.releases.ranges) == ["1.0", "1.1", "trunk"]
    assert str(found.releases.ranges["1.1"]["A"]) == "1-2"
    assert found.comments["ARequest"] == ("Ours.",)
    assert str(found.messages[0].valid_versions) == "0-2"


def test_files_that_differ_are_overwritten_only_if_asked_to(tmp_path: Path) -> None:
    found = merged([message(A), message(B, name="N")])
    assert write_timeline(found, tmp_path / "out", overwrite=False) == (3, [])
    assert write_timeline(found, tmp_path / "out", overwrite=False) == (0, [])
    (tmp_path / "out" / "Other.json").write_text("{}")
    (tmp_path / "out" / "N.json").write_text("{}")
    (tmp_path / "out" / "M.json").unlink()
    with pytest.raises(FileExistsError):
        write_timeline(found, tmp_path / "out", overwrite=False)
    assert not (tmp_path / "out" / "M.json").exists()
    assert write_timeline(found, tmp_path / "out", overwrite=True) == (2, ["Other.json"])
    assert (tmp_path / "out" / "Other.json").read_text() == "{}"


def test_merging_takes_time_in_proportion_to_fields() -> None:
    """Each field is compared with its counterpart alone."""
    steps = []
    for count in (40, 400):
        fields = [field(f"F{n}") for n in range(count)]
        older = message(*fields, valid="0-1")
        newer = message(*fields[::2], valid="2-3")
        calls = 0

        def counted(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            return cut(*arguments)  # type: ignore[arg-type]

        combine_globals = combine.__globals__
        combine_globals["cut"] = counted
        try:
            combine(normal(newer), normal(older), Versions(0, 1))
        finally:
            combine_globals["cut"] = cut
        steps.append(calls)
    assert steps == [40, 400]
