"""Cases are the same in each run, of all forms, and change nothing that has another name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from kafkawire.errors import WireError
from kafkawire.fuzz.bodies import is_name
from kafkawire.fuzz.cases import Case, Expected, Form
from kafkawire.fuzz.faults import Kind
from kafkawire.fuzz.scopes import Scope, scope_of
from kafkawire.fuzz.shrinking import simpler
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.protocol.fields import fields_at
from kafkawire.protocol.frame import SIZE, decode_frame

from .plans import PREFIX, plan, versions

CASES = 600
NAMED = [api for api in versions() if scope_of(api) is Scope.NAMED]


def names(value: Any, version: int) -> Iterator[str]:
    """Yield the names in a request."""
    for field in fields_at(type(value), version):
        held = getattr(value, field.attribute)
        for each in held if isinstance(held, list) else [held]:
            if field.struct is not None and each is not None:
                yield from names(each, version)
            elif is_name(field) and isinstance(each, str):
                yield each


def decoded(case: Case) -> Any:
    """Return the request that a broker decodes; None if it decodes none."""
    try:
        return decode_frame(case.data())
    except WireError:
        return None


def test_a_case_depends_on_its_seed_and_number_alone() -> None:
    forwards = [plan().case(index) for index in range(50)]
    backwards = [plan().case(index) for index in reversed(range(50))]
    assert [each.data() for each in forwards] == [each.data() for each in reversed(backwards)]
    assert [each.data() for each in forwards] != [plan(8).case(i).data() for i in range(50)]


def test_cases_are_of_every_api_form_and_fault() -> None:
    cases = [plan().case(index) for index in range(CASES)]
    assert {each.api for each in cases} == set(versions())
    assert {each.form for each in cases} == set(Form)
    assert {each.fault.kind for each in cases if each.fault is not None} == set(Kind)
    for each in cases:
        assert (each.fault is None) == (each.form is not Form.BROKEN)


def test_requests_without_faults_can_be_decoded() -> None:
    for index in range(CASES):
        case = plan().case(index)
        if case.fault is None:
            frame = decode_frame(case.data())
            assert (frame.api_key, frame.api_version) == (case.api, case.version)
            assert frame.correlation_id == case.correlation_id


def test_what_changes_something_names_only_what_is_of_the_run() -> None:
    """Neither values nor faults make names of others, nor does shrinking."""
    named = plan(3, *NAMED)
    seen = 0
    for index in range(CASES):
        case = named.case(index)
        for each in (case, *islice(simpler(case), 3)):
            frame = decoded(each)
            if frame is None or frame.api_key != case.api or frame.api_version != case.version:
                continue
            for name in names(frame.body, case.version):
                seen += 1
                assert name.startswith(PREFIX), (index, each)
    assert seen > CASES / 2


def test_only_topics_have_configurations_altered() -> None:
    altering = plan(1, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
    for index in range(300):
        frame = decoded(altering.case(index))
        for each in frame.body.resources if frame is not None else ():
            assert each.resource_type == 2


def test_no_api_is_both_harmless_and_able_to_stop_a_broker() -> None:
    for api in (
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UNREGISTER_CONTROLLER,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ELECT_LEADERS,
    ):
        assert scope_of(api) is Scope.CLUSTER


def test_sizes_of_frames_with_other_faults_are_right() -> None:
    for index in range(CASES):
        case = plan().case(index)
        if case.fault is not None and case.fault.kind not in (Kind.SIZE, Kind.INCOMPLETE):
            data = case.data()
            assert int.from_bytes(data[:SIZE], "big") == len(data) - SIZE


def test_versions_that_are_not_offered_are_not() -> None:
    for index in range(CASES):
        case = plan().case(index)
        if case.fault is not None and case.fault.kind is Kind.VERSION:
            assert case.fault.number not in versions()[case.api]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case(0, Form.VALID, ApiKey.METADATA, 9, MetadataRequest()), Expected.RESPONSE),
        (Case(0, Form.VALID, ApiKey.PRODUCE, 9, ProduceRequest(acks=0)), Expected.NO_RESPONSE),
        (Case(0, Form.VALID, ApiKey.PRODUCE, 9, ProduceRequest(acks=1)), Expected.RESPONSE),
        (Case(0, Form.VALID, ApiKey.PRODUCE, 2, ProduceRequest()), Expected.RESPONSE_OR_CLOSE),
    ],
)
def test_what_may_follow(case: Case, expected: Expected) -> None:
    assert case.expected is expected
