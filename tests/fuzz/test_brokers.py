"""Our broker is fuzzed without findings; planted faults are found, and their requests shrunk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire.blocking import Admin as BlockingAdmin
from kafkawire.capture import decode_capture
from kafkawire.client.config import read_config
from kafkawire.conformance.connection import Target
from kafkawire.errors import WireError
from kafkawire.fuzz.judgement import Problem
from kafkawire.fuzz.run import Finding, Report, Settings, run
from kafkawire.messages.api_key import ApiKey
from kafkawire.net.admin import ADMIN_KEYS, Admin
from kafkawire.net.server_thread import ServerThread
from kafkawire.protocol.frame import decode_frame

from ..conformance.checks import config
from .planted import Change, Fault, Wrong, planted, responds, unchanged

pytestmark = pytest.mark.timeout(120)

PREFIX = "fuzz-brokers"
API = ApiKey.DESCRIBE_GROUPS


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ServerThread(config()) as server:
        yield server.bootstrap


async def fuzzed(bootstrap: str, settings: Settings, timeout_s: float = 30.0) -> Report:
    """Fuzz a broker."""
    values = {"bootstrap.servers": bootstrap}
    async with Admin(values) as admin:
        return await run(Target(read_config(ADMIN_KEYS, values), timeout_s), admin, settings)


def findings(
    bootstrap: str,
    wrong: Wrong = responds,
    change: Change = unchanged,
    timeout_s: float = 30.0,
    captures: Path | None = None,
) -> list[Finding]:
    """Fuzz a broker with planted faults with requests of one API."""

    async def work() -> Report:
        async with planted(bootstrap, wrong, change) as address:
            settings = Settings(
                3, 40, prefix=PREFIX, apis=frozenset({API}), captures=captures, shrinking_s=20.0
            )
            return await fuzzed(address, settings, timeout_s)

    return asyncio.run(work()).findings


def request(frame: bytes) -> Any:
    """Return the request in a frame, if it is one of the API."""
    try:
        decoded = decode_frame(frame)
    except WireError:
        return None
    return decoded.body if decoded.api_key == API else None


def authorized(frame: bytes) -> bool:
    """Whether a request wants the operations that are authorized."""
    body = request(frame)
    return body is not None and body.include_authorized_operations


def when_authorized(fault: Fault) -> Wrong:
    return lambda frame: fault if authorized(frame) else Fault.RESPOND


def test_our_broker_is_fuzzed_without_findings_and_left_clean(bootstrap: str) -> None:
    report = asyncio.run(fuzzed(bootstrap, Settings(1, 300, prefix=PREFIX)))
    assert report.findings == []
    assert report.left == []
    assert report.sent == 300
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        assert not [each for each in admin.list_topics() if each.startswith(PREFIX)]
        assert not [each for each in admin.list_groups() if each.group_id.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("fault", "problem", "timeout_s"),
    [(Fault.HANG, Problem.NO_RESPONSE, 0.1), (Fault.CLOSE, Problem.CLOSED, 30.0)],
)
def test_a_request_without_response_is_shrunk(
    bootstrap: str, fault: Fault, problem: Problem, timeout_s: float
) -> None:
    reported = findings(bootstrap, when_authorized(fault), timeout_s=timeout_s)
    [finding] = [each for each in reported if each.problem is problem and each.repeatable]
    body: Any = finding.smallest.message
    assert finding.smallest.fault is None
    assert (body.groups, body.include_authorized_operations) == ([], True)


def cut(_: bytes, response: bytes) -> bytes:
    return (len(response) - 5).to_bytes(4, "big") + response[4:-1]


def renumbered(_: bytes, response: bytes) -> bytes:
    return response[:4] + b"\x7f\x00\x00\x00" + response[8:]


def twice(_: bytes, response: bytes) -> bytes:
    return response * 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (cut, Problem.UNDECODABLE),
        (renumbered, Problem.CORRELATION_ID),
        (twice, Problem.NO_RESPONSE),
    ],
)
def test_a_wrong_response_is_shrunk(bootstrap: str, change: Change, problem: Problem) -> None:
    def changed(frame: bytes, response: bytes) -> bytes:
        return change(frame, response) if authorized(frame) else response

    [finding] = findings(bootstrap, change=changed)
    body: Any = finding.smallest.message
    assert finding.problem is problem
    assert (body.groups, body.include_authorized_operations) == ([], True)


def test_a_broker_that_crashes_is_the_last_finding(bootstrap: str) -> None:
    *_, finding = findings(bootstrap, when_authorized(Fault.CRASH))
    assert finding.problem is Problem.UNREACHABLE
    assert authorized(finding.smallest.data())


def test_packets_of_a_finding_are_those_of_its_smallest_request(
    bootstrap: str, tmp_path: Path
) -> None:
    [finding] = findings(bootstrap, when_authorized(Fault.CLOSE), captures=tmp_path)
    assert [finding.capture] == list(tmp_path.iterdir())
    assert finding.capture is not None
    rows = [one.row for one in decode_capture(finding.capture)]
    requests = [each for each in rows if each.api_key == API and each.direction == "request"]
    assert [each.message for each in requests] == [finding.smallest.message]


def test_a_case_by_itself_is_that_of_the_run(bootstrap: str) -> None:
    async def work() -> tuple[Report, Report]:
        async with planted(bootstrap, when_authorized(Fault.CLOSE)) as address:
            settings = Settings(3, 40, prefix=PREFIX, apis=frozenset({API}), shrinking_s=0.0)
            whole = await fuzzed(address, settings)
            number = whole.findings[0].case.number
            return whole, await fuzzed(address, Settings(3, 1, number, PREFIX, frozenset({API})))

    whole, single = asyncio.run(work())
    assert [each.case.data() for each in single.findings] == [whole.findings[0].case.data()]
