"""Releases and what of them a set of schemas covers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkawire_codegen import schemas_dir, source
from kafkawire_codegen.evolution import compare
from kafkawire_codegen.releases import Releases, UnknownRelease, coverage, parse, read
from kafkawire_codegen.schema import RELEASES, MessageSchema, SchemaErrors
from tests.schemas import schemas

from .written import field, message

TABLE = """{
  "releases": {
    "1.0": { "A": "0-1", "B": "0" },
    "2.0": { "A": "1-4", "B": "0", "C": "0-2" }
  },
  "unstable": { "2.0": { "A": "4" } }
}"""


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    (tmp_path / RELEASES).write_text(TABLE)
    return read(tmp_path / RELEASES)


def test_locations_are_made_for_errors_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, releases: Releases
) -> None:
    """Each `diagnose` reads the releases; the parser with locations took a sixth of its start."""
    commented = tmp_path / "commented.json"
    commented.write_text(f"// with a comment\n{TABLE}")
    assert read(commented) == releases
    monkeypatch.setattr(source, "parse", pytest.fail)
    assert read(tmp_path / RELEASES) == releases
    assert read(schemas_dir() / RELEASES).ranges


@pytest.mark.parametrize(
    "text",
    [
        TABLE.replace('"0-2"', '"2-0"'),
        TABLE.replace('"0-2"', "[]"),
        TABLE.replace('"2.0": { "A": "4" }', '"2.0": "4-3"').replace('"0-2"', '"x"'),
        TABLE.replace('"unstable"', '"stable"'),
        TABLE.replace('"0-2"', "NaN"),
        '{"releases": ' * 10_000,
    ],
    ids=["range", "list", "kind", "missing", "constant", "deep"],
)
def test_an_error_has_its_location(text: str) -> None:
    with pytest.raises(SchemaErrors, match=r"releases\.json:\d+:\d+"):
        parse(text.encode(), RELEASES)


def test_the_first_of_repeated_keys_counts(releases: Releases) -> None:
    repeated = TABLE.replace('"C": "0-2"', '"C": "0-2", "C": "1"')
    assert parse(repeated.encode(), RELEASES) == releases


def api(name: str, key: int, request: str, response: str | None = None) -> list[MessageSchema]:
    halves = [("Request", request), ("Response", request if response is None else response)]
    fields = [field("First"), field("Third", versions="3+")]
    return [
        message(
            *fields[: 1 + (valid > "2")],
            name=name + kind,
            valid=valid,
            head=f'"type": "{kind.lower()}", "apiKey": {key}',
        )
        for kind, valid in halves
        if valid
    ]


def test_what_is_missing_and_what_is_extra(releases: Releases) -> None:
    schemas = [*api("A", 0, "2-3"), *api("B", 1, "0-2", "0-1"), *api("D", 3, "0")]
    found = coverage("2.0", releases, [*schemas, message(field("A"))])
    assert found.text().splitlines() == [
        "  0 A: 1-4 released, 2-3 covered, missing 1 and 4",
        "  1 B: 0 released, 0-1 covered, extra 1",
        "  3 D: none released, 0 covered, extra 0",
        "  - C: 0-2 released, none covered, missing 0-2",
        "Kafka 2.0: 3 APIs, 8 versions, 3 covered, 5 missing",
    ]
    assert not found.complete
    assert json.loads(json.dumps(found.json()))["apis"][0] == {
        "api": "A",
        "api_key": 0,
        "released": "1-4",
        "covered": "2-3",
        "missing": ["1", "4"],
        "extra": [],
    }


def test_a_request_alone_covers_nothing(releases: Releases) -> None:
    found = coverage("1.0", releases, [*api("A", 0, "0-1"), *api("B", 1, "0", "")])
    assert [api.api for api in found.apis if api.missing] == ["B"]


def test_what_is_covered_and_more_is_complete(releases: Releases) -> None:
    assert coverage("1.0", releases, [*api("A", 0, "0-9"), *api("B", 1, "0")]).complete


def test_schemas_are_cut_to_what_a_release_speaks(releases: Releases) -> None:
    schemas = [*api("A", 0, "0-9"), *api("D", 3, "0"), message(field("A"))]
    cut = releases.at("2.0", schemas)
    assert [(s.name, str(s.valid_versions)) for s in cut] == [
        ("ARequest", "1-4"),
        ("AResponse", "1-4"),
    ]
    assert [s.latest_version_unstable for s in cut] == [True, False]


def test_two_releases_differ_by_versions_and_the_fields_these_brought(releases: Releases) -> None:
    schemas = api("A", 0, "3-9", "3-9") + api("B", 1, "0-9")
    table = Releases({**releases.ranges, "3.0": {**releases.ranges["2.0"]}}, releases.unstable)
    evolution = compare(table.at("1.0", schemas), table.at("2.0", schemas))
    assert evolution.added == ("ARequest", "AResponse")
    assert compare(table.at("2.0", schemas), table.at("3.0", schemas)).text().splitlines() == [
        "ARequest",
        "  ~ latestVersionUnstable yes -> none",
        "0 added, 0 removed, 1 changed, 0 rules broken",
    ]


def test_an_unknown_release_names_the_known_ones(releases: Releases) -> None:
    with pytest.raises(UnknownRelease, match=r"unknown release '3\.0' \(known: 1\.0, 2\.0\)$"):
        releases.of("3.0")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{ "releases": [], "unstable": {} }', '1:15: releases: "releases" must be an object'),
        ('{ "releases": {} }', '1:1: unstable: "unstable" must be an object'),
        (
            '{ "releases": { "1.0": { "A": "x" } }, "unstable": {} }',
            "1:31: releases.1.0.A: 'x' is not",
        ),
    ],
)
def test_a_malformed_table_is_refused_at_its_place(text: str, error: str, tmp_path: Path) -> None:
    (tmp_path / RELEASES).write_text(text)
    with pytest.raises(SchemaErrors) as caught:
        read(tmp_path / RELEASES)
    assert f"{tmp_path / RELEASES}:{error}" in str(caught.value)


def test_our_own_schemas_cover_every_release_we_know() -> None:
    ours, known = schemas(), read(schemas_dir() / RELEASES)
    assert {"2.2", "3.0", "4.0", "trunk"} <= set(known.ranges)
    for release in known.ranges:
        assert coverage(release, known, ours).complete, release
