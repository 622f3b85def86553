"""What changed between two sets of schemas, and each rule of evolution that a change can break."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from kafkawire_codegen.evolution import Evolution, compare
from kafkawire_codegen.evolution.breaches import EVOLUTION_RULES
from kafkawire_codegen.schema import MessageSchema
from tests.schemas import schemas

from .written import field, message, struct, tagged


def change(
    old: tuple[str, ...],
    new: tuple[str, ...],
    valid: str = "0-1",
    structs: tuple[str, str] = ("", ""),
) -> Evolution:
    """Compare a message of `old` fields with the same message of `new` ones."""
    before = message(*old, valid=valid, structs=structs[0])
    return compare([before], [message(*new, valid=valid, structs=structs[1])])


def broken(evolution: Evolution) -> list[tuple[str, str, str]]:
    return [(e.rule, e.path, e.reason) for e in evolution.breaches]


class Breach(NamedTuple):
    """A change of fields that breaks one rule at one path."""

    rule: str
    path: str
    reason: str
    old: tuple[str, ...]
    new: tuple[str, ...]


A, B = field("A"), field("B")
NULLABLE = '"nullableVersions": "0+"'
BREACHES = [
    Breach("field-added", "M.B", "int32 is new in 0-1, released without it: tag it", (A,), (A, B)),
    Breach(
        "field-added",
        "M.B",
        "int32 is new in 1, released without it: tag it",
        (A,),
        (A, field("B", versions="1+")),
    ),
    Breach(
        "field-added",
        "M.S[].D",
        "int8 is new in 0-1, released without it: tag it",
        (struct("S", "[]T", field("C")),),
        (struct("S", "[]T", field("C"), field("D", "int8")),),
    ),
    Breach("field-removed", "M.B", "int32 is removed from 0-1", (A, B), (A,)),
    Breach(
        "field-removed", "M.B", "int32 is removed from 0", (A, B), (A, field("B", versions="1+"))
    ),
    Breach("field-removed", "M.B", "int32 is removed from 1", (A, tagged("B", 0)), (A,)),
    Breach("field-moved", "M.B", "it stands before A in 0-1, but stood after it", (A, B), (B, A)),
    Breach("field-retyped", "M.A", "int32 in 0-1, and is int64", (A,), (field("A", "int64"),)),
    Breach("field-retyped", "M.A", "int32 in 0-1, and is []int32", (A,), (field("A", "[]int32"),)),
    Breach(
        "field-retyped",
        "M.S",
        "T in 0-1, and is nullable T",
        (struct("S", "T", A),),
        (struct("S", "T", A, more=f", {NULLABLE}"),),
    ),
    Breach(
        "tag-changed",
        "M.A",
        "tag 0 in 1, and is tag 1",
        (tagged("A", 0), tagged("B", 1)),
        (tagged("A", 1), tagged("C", 0, "string"), tagged("B", 2)),
    ),
    Breach(
        "tag-changed",
        "M.A",
        "untagged in 1, and is tag 0",
        (field("A", versions="1+"),),
        (tagged("A", 0),),
    ),
    Breach(
        "tag-reused",
        "M.B",
        "tag 0 was A, int32, in 1, and is string",
        (tagged("A", 0),),
        (tagged("B", 0, "string"),),
    ),
    Breach(
        "nullability-narrowed",
        "M.A",
        "it could be null in 0, and cannot",
        (field("A", "string", more=NULLABLE),),
        (field("A", "string", more='"nullableVersions": "1+"'),),
    ),
    Breach(
        "default-changed",
        "M.A",
        "'' in 0-1, and is '-1'",
        (A,),
        (field("A", more='"default": "-1"'),),
    ),
]


@pytest.mark.parametrize("breach", BREACHES, ids=lambda b: b.rule)
def test_a_rule_of_evolution_finds_its_breach(breach: Breach) -> None:
    found = broken(change(breach.old, breach.new))
    assert (breach.rule, breach.path, breach.reason) in found


def test_a_default_may_look_like_a_template() -> None:
    old, new = (field("A", "string", more=f'"default": "{text}"') for text in ("{x}", "%s"))
    assert broken(change((old,), (new,))) == [
        ("default-changed", "M.A", "'{x}' in 0-1, and is '%s'"),
    ]


def test_what_is_inside_a_retyped_field_is_not_compared() -> None:
    old, new = struct("S", "T", A), struct("S", "[]T", B)
    assert broken(change((old,), (new,))) == [("field-retyped", "M.S", "T in 0-1, and is []T")]


def test_a_message_may_not_go() -> None:
    evolution = compare([message(A)], [])
    assert broken(evolution) == [
        ("message-removed", "M", "the message is removed, with its versions 0-1")
    ]
    assert evolution.removed == ("M",)


def test_an_api_key_may_not_change() -> None:
    heads = [f'"type": "metadata", "apiKey": {key}' for key in (1, 2)]
    old, new = (message(A, head=head) for head in heads)
    assert broken(compare([old], [new])) == [("api-key-changed", "M", "the api key was 1 and is 2")]


def test_a_version_may_not_be_dropped() -> None:
    old, new = message(A, valid="0-3"), message(A, valid="2-4")
    evolution = compare([old], [new])
    assert broken(evolution) == [("version-dropped", "M", "0-1 is no longer valid")]
    assert (evolution.changed[0].versions_added, evolution.changed[0].versions_removed) == (
        "4",
        "0-1",
    )


def test_a_released_version_may_not_become_flexible() -> None:
    old, new = message(A, flexible="none"), message(A, flexible="1+")
    reason = "of 0-1, none was flexible and 1 is"
    assert broken(compare([old], [new])) == [("flexible-versions-changed", "M", reason)]


def test_every_rule_of_evolution_has_a_test() -> None:
    alone = {
        "message-removed",
        "api-key-changed",
        "version-dropped",
        "flexible-versions-changed",
        "header-version-changed",
    }
    assert {breach.rule for breach in BREACHES} | alone == set(EVOLUTION_RULES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((A,), (A, tagged("B", 0))),
        ((A,), (A, field("B", versions="2+"))),
        ((A,), (field("Renamed"),)),
        ((field("A", "bytes"),), (field("A", "records"),)),
        ((A, tagged("B", 0)), (A, tagged("Renamed", 0))),
        ((struct("S", "[]T", A),), (struct("S", "[]Renamed", A),)),
        ((field("A", "string"),), (field("A", "string", more=NULLABLE),)),
        ((field("A", more='"default": "16"'),), (field("A", more='"default": "0x10"'),)),
        ((A,), (field("A", more='"default": "0"'),)),
        ((A, B), (field("A", versions="0-1"), B)),
    ],
)
def test_what_no_peer_can_tell_apart_breaks_nothing(
    old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    assert broken(change(old, new)) == []


def test_a_common_struct_is_compared_at_each_place_by_the_versions_there() -> None:
    old = '{ "name": "S", "versions": "0+", "fields": [' + field("C") + "] }"
    new = old.replace('"int32"', '"int64"')
    fields = (field("A", "S", "0"), field("B", "[]S", "1+"))
    assert broken(change(fields, fields, structs=(old, new))) == [
        ("field-retyped", "M.A.C", "int32 in 0, and is int64"),
        ("field-retyped", "M.B[].C", "int32 in 1, and is int64"),
    ]


def test_separate_versions_are_listed_separately() -> None:
    old = (field("A", versions="0+"),)
    new = (field("A", versions="1-2"),)
    (found,) = broken(change(old, new, valid="0-4"))
    assert found == ("field-removed", "M.A", "int32 is removed from 0 and 3-4")


def api(kind: str, valid: str, *fields: str, unstable: bool = False) -> MessageSchema:
    head = f'"type": "{kind.lower()}", "apiKey": 1'
    head += ', "latestVersionUnstable": true' * unstable
    return message(*fields, name=f"A{kind}", valid=valid, head=head)


HEADERS = '"type": "request", "apiKey": 1, "headerVersions": {}'


def headed(headers: str, valid: str = "0-1") -> MessageSchema:
    return message(A, name="ARequest", valid=valid, head=HEADERS.format(headers))


def test_a_released_version_keeps_its_header_version() -> None:
    old, new = headed('{"0": "1", "1+": "2"}'), headed('{"0": "0", "1+": "2"}', "0-2")
    evolution = compare([old], [new])
    reason = "the header version was 1 in 0, and is 0"
    assert broken(evolution) == [("header-version-changed", "ARequest", reason)]
    assert "  ~ headerVersions 0: 1, 1+: 2 -> 0: 0, 1+: 2" in evolution.text().splitlines()


def test_header_versions_that_are_written_out_are_no_change() -> None:
    plain = message(A, name="ARequest", head='"type": "request", "apiKey": 1')
    assert compare([plain], [headed('{"0": "1", "1+": "2"}')]) == Evolution((), (), (), ())


def test_a_header_version_follows_flexibility_which_is_reported_alone() -> None:
    head = '"type": "request", "apiKey": 1'
    old, new = (message(A, name="ARequest", flexible=f, head=head) for f in ("1+", "none"))
    assert [rule for rule, _, _ in broken(compare([old], [new]))] == ["flexible-versions-changed"]


def test_an_unstable_version_is_free_in_the_request_and_in_its_response() -> None:
    old = [api("Request", "0-1", A, unstable=True), api("Response", "0-1", A)]
    new = [api("Request", "0", A), api("Response", "0-1", A, field("B", versions="1+"))]
    assert broken(compare(old, new)) == []
    old[0] = api("Request", "0-1", A)
    assert [rule for rule, _, _ in broken(compare(old, new))] == ["version-dropped", "field-added"]


def test_a_message_with_nothing_but_an_unstable_version_may_go() -> None:
    assert broken(compare([api("Request", "0", A, unstable=True)], [])) == []


def test_everything_that_changed_is_listed_field_by_field() -> None:
    old = message(A, struct("S", "[]T", field("C"), field("D")), field("E", "string"))
    new = message(
        field("A", "int32", more='"ignorable": true, "entityType": "brokerId"'),
        struct("S", "[]T", field("C"), field("F", versions="2+")),
        field("E", "string", more=NULLABLE),
        valid="0-2",
    )
    added = message(A, name="N")
    evolution = compare([old], [new, added])
    assert evolution.text().splitlines() == [
        "+ N",
        "M",
        "  + versions 2",
        "  + S[].F: int32, 2+",
        "  - S[].D: int32, 0+",
        "  ~ A: ignorable none -> yes",
        "  ~ A: entityType none -> brokerId",
        "  ~ E: nullableVersions none -> 0+",
        "",
        "Rules of evolution broken:",
        f"{new.location.file}:1:1: M.S[].D: int32 is removed from 0-1 [field-removed]",
        "1 added, 0 removed, 1 changed, 1 rules broken",
    ]
    (change_,) = json.loads(json.dumps(evolution.json()))["changed"]
    assert change_["fields_added"] == [{"path": "S[].F", "type": "int32", "versions": "2+"}]
    assert change_["differences"][2] == {
        "path": "E",
        "attribute": "nullableVersions",
        "before": "none",
        "after": "0+",
    }


def test_a_set_compared_with_itself_has_not_changed() -> None:
    ours = schemas()
    assert compare(ours, ours) == Evolution((), (), (), ())
