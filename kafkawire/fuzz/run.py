"""Runs cases against a broker one after the other, each on a connection of its own.

A second connection shows after each case whether the broker still serves others. What shows a
problem for the first time is sent again, then made smaller.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..conformance.connection import Connection, Target
from ..conformance.run import offered, reached, recorded
from ..errors import KafkaWireError
from ..messages.api_key import ApiKey
from ..messages.api_versions_response import ApiVersionsResponse
from ..net.admin import Admin
from ..net.brokers.recording import Recording
from .cases import Case, Plan
from .cleaning import cleaned_up, existing_topic
from .departures import departure
from .judgement import Problem, Verdict, judge
from .observing import VERIFIED, observe
from .scopes import Scope, scope_of
from .shrinking import simpler


@dataclass(frozen=True)
class Settings:
    """What a run sends, and how.

    start, count: the numbers of its cases. apis: None for all that change nothing but what the
    request names; unsafe: all. rate: requests per second, 0 for no limit. shrinking_s: seconds for
    each finding, at most.
    """

    seed: int
    count: int
    start: int = 0
    prefix: str = "kafkawire-fuzz"
    apis: frozenset[ApiKey] | None = None
    unsafe: bool = False
    rate: float = 0.0
    shrinking_s: float = 60.0
    captures: Path | None = None


@dataclass
class Finding:
    """What a broker must not do, and a request after which it does.

    case: the first that showed it; smallest: what is left of it. repeatable: whether it showed the
    problem again; tried: requests that were sent to make it smaller. numbers: of all cases with the
    same problem of the same API.
    """

    case: Case
    problem: Problem
    verdict: Verdict
    smallest: Case
    numbers: list[int]
    repeatable: bool = False
    tried: int = 0
    capture: Path | None = None


@dataclass
class ApiCounts:
    """What became of the requests of an API; errors: responses with each error code."""

    sent: int = 0
    responded: int = 0
    closed: int = 0
    problems: int = 0
    errors: Counter[int] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        """Count a request."""
        self.sent += 1
        self.responded += verdict.response is not None
        self.closed += verdict.closed
        self.problems += verdict.problem is not None
        self.errors.update(verdict.errors)


@dataclass
class Report:
    """The result of a run; left: what could not be created or deleted."""

    settings: Settings
    sent: int = 0
    apis: dict[ApiKey, ApiCounts] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def chosen(settings: Settings, versions: Mapping[ApiKey, range]) -> dict[ApiKey, range]:
    """Return the APIs that a run sends, of those that the broker offers."""
    if settings.apis is not None:
        return {api: each for api, each in versions.items() if api in settings.apis}
    return {
        api: each
        for api, each in versions.items()
        if settings.unsafe or scope_of(api) is not Scope.CLUSTER
    }


async def run(
    target: Target,
    admin: Admin,
    settings: Settings,
    on_case: Callable[[Case, Verdict], None] = lambda _, __: None,
    on_finding: Callable[[Finding], None] = lambda _: None,
) -> Report:
    """Send the cases of a run, and delete afterwards what they created.

    on_case: called with each case and what the broker did. on_finding: called with each finding,
    once its case is as small as it gets. Ends early once the broker cannot be reached. Raises
    Unanswered if it cannot be from the beginning.
    """
    versions = await offered(target)
    prefix = f"{settings.prefix}-{settings.seed}"
    report = Report(settings)
    try:
        async with existing_topic(target, admin, versions, prefix, report.left) as names:
            plan = Plan(settings.seed, chosen(settings, versions), names, settings.unsafe)
            if plan.versions:
                await Run(target, plan, report, on_case, on_finding).cases()
    finally:  # also of an interrupted run
        alive = all(each.problem is not Problem.UNREACHABLE for each in report.findings)
        report.left += await cleaned_up(admin, prefix) if alive else [f"{prefix}-*"]
    return report


class Run:
    """A run: its connection beside those of the cases, and what it has seen."""

    def __init__(
        self,
        target: Target,
        plan: Plan,
        report: Report,
        on_case: Callable[[Case, Verdict], None],
        on_finding: Callable[[Finding], None],
    ) -> None:
        self._target = target
        self._plan = plan
        self._report = report
        self._on_case = on_case
        self._on_finding = on_finding
        self._beside: Connection | None = None
        self._findings: dict[tuple[Problem, ApiKey], Finding] = {}

    async def cases(self) -> None:
        """Send all cases, or those up to the one after which nobody reaches the broker."""
        settings, loop = self._report.settings, asyncio.get_running_loop()
        begun = loop.time()
        try:
            for number in range(settings.count):
                if settings.rate:
                    await asyncio.sleep(begun + number / settings.rate - loop.time())
                if not await self._case(self._plan.case(settings.start + number)):
                    return
        finally:
            if self._beside is not None:
                self._beside.close()

    async def _case(self, case: Case) -> bool:
        """Send a case; whether the broker can be reached afterwards."""
        verdict, capture = await self._send(case)
        self._report.sent += 1
        self._report.apis.setdefault(case.api, ApiCounts()).add(verdict)
        self._on_case(case, verdict)
        if verdict.problem is None:
            return True
        key = verdict.problem, case.api
        earlier = self._findings.get(key)
        if earlier is not None:
            earlier.numbers.append(case.number)
            if capture is not None:
                capture.unlink()
            return verdict.problem is not Problem.UNREACHABLE
        finding = Finding(case, verdict.problem, verdict, case, [case.number], capture=capture)
        self._findings[key] = finding
        findings = self._report.findings
        findings.append(finding)
        earlier_findings = len(findings) - 1
        reachable = verdict.problem is not Problem.UNREACHABLE and await self._shrink(finding)
        for each in findings[earlier_findings:]:
            self._on_finding(each)
        return reachable

    async def _shrink(self, finding: Finding) -> bool:
        """Make the case of a finding smaller; whether the broker can be reached afterwards."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._report.settings.shrinking_s
        candidates = iter((finding.case,))
        while (case := next(candidates, None)) is not None and loop.time() < deadline:
            verdict, capture = await self._send(case)
            finding.tried += 1
            if verdict.problem is finding.problem:
                finding.repeatable = True
                finding.smallest, finding.verdict = case, verdict
                finding.capture, capture = capture, finding.capture
                candidates = simpler(case)
            if capture is not None:
                capture.unlink()
            if verdict.problem is Problem.UNREACHABLE:
                lost = Finding(
                    finding.case, Problem.UNREACHABLE, verdict, case, [finding.case.number]
                )
                self._report.findings.append(lost)
                return False
        return True

    async def _send(self, case: Case) -> tuple[Verdict, Path | None]:
        """Send a case; return what the broker did, and the packets if that is a problem."""
        name = f"{self._plan.names.prefix}-{case.number}"
        with recorded(self._report.settings.captures, name) as recording:
            async with self._connected(recording.writer) as connection:
                if connection is None:
                    return Verdict(Problem.UNREACHABLE), None
                observed = await observe(connection, case)
            observed = replace(observed, alive=await self._alive())
            verdict = judge(case, observed)
            recording.kept = verdict.problem is not None
        if verdict.response is not None:
            await self._depart(case, verdict)
        return verdict, recording.path

    @contextlib.asynccontextmanager
    async def _connected(self, recording: Recording | None) -> AsyncIterator[Connection | None]:
        """Connect for one case; None if the broker cannot be reached."""
        try:
            connection = await reached(self._target, recording)
        except KafkaWireError:
            yield None
            return
        try:
            yield connection
        finally:
            connection.close()

    async def _alive(self) -> bool:
        """Whether the broker responds on the other connection, or on a new one."""
        for _ in range(2):
            try:
                if self._beside is None:
                    self._beside = await reached(self._target)
                await self._beside.send(VERIFIED, 0, ApiVersionsResponse)
            except KafkaWireError:
                if self._beside is not None:
                    self._beside.close()
                self._beside = None
                continue
            self._beside.exchanges.clear()
            return True
        return False

    async def _depart(self, case: Case, verdict: Verdict) -> None:
        """Leave the group that a case joined."""
        assert verdict.response is not None
        leave = departure(case.message, verdict.response)
        if leave is None or self._beside is None:
            return
        version = case.version if leave.version is None else leave.version
        with contextlib.suppress(KafkaWireError):
            await self._beside.send(leave.request, version, leave.response)
