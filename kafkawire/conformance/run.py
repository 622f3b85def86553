"""Runs behaviours against a broker, several at a time, each with connections of its own.

What a behaviour cannot be checked for is a result too: an API or a version that is not offered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from ..client.config import bootstrap
from ..client.network.negotiated_versions import ours
from ..errors import KafkaWireError
from ..messages.api_key import ApiKey
from ..messages.api_versions_request import ApiVersionsRequest
from ..messages.api_versions_response import ApiVersionsResponse
from ..net.brokers.recording import Recording
from .behaviour import Behaviour, NotOffered, api_name
from .connection import Connection, Exchange, Target, Unanswered
from .session import Names, Session

AT_ONCE: Final = 16
"""Checks at a time: a group's first rebalance waits for more members, 3 s by default."""


class Outcome(Enum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_OFFERED = "not offered"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a behaviour in one version; version None: it was checked in none.

    detail: why it failed, or what is not offered. exchanges: of a failure. left: what could not be
    deleted. capture: the file with the packets of a failure.
    """

    behaviour: Behaviour
    version: int | None
    outcome: Outcome
    detail: str = ""
    exchanges: Sequence[Exchange] = ()
    left: Sequence[str] = ()
    capture: Path | None = None


async def offered(target: Target) -> dict[ApiKey, range]:
    """Return the APIs that a broker offers: those of Kafka, with the versions of both sides.

    Raises Unanswered if it cannot be reached.
    """
    connection = await reached(target)
    try:
        response = await connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse)
    finally:
        connection.close()
    versions: dict[ApiKey, range] = {}
    apis = {each.value: each for each in ApiKey}
    for each in response.api_keys:
        api = apis.get(each.api_key)
        if api is None:
            continue
        have = ours(api)
        first, last = max(each.min_version, have.lowest), min(each.max_version, have.highest)
        if first <= last:
            versions[api] = range(first, last + 1)
    return versions


async def reached(target: Target, recording: Recording | None = None) -> Connection:
    """Connect to the first bootstrap server that answers. Raises Unanswered."""
    *others, last = bootstrap(target.values)
    for address in others:
        with contextlib.suppress(Unanswered):
            return await Connection.open(address, target, recording)
    return await Connection.open(last, target, recording)


def versions_of(behaviour: Behaviour, versions: Mapping[ApiKey, range]) -> Sequence[int] | str:
    """Return the versions in which a behaviour can be checked, or why there are none."""
    for api, lowest in behaviour.needs.items():
        if api not in versions or versions[api][-1] < lowest:
            return f"{api_name(api)} {lowest} or newer is not offered"
    have = versions.get(behaviour.api, range(0))
    checked = [each for each in have if behaviour.lowest <= each <= behaviour.highest]
    if checked:
        return checked
    return f"{api_name(behaviour.api)} is not offered" + (
        f" in version {behaviour.lowest}" if have else ""
    )


async def run(
    target: Target,
    behaviours: Iterable[Behaviour],
    prefix: str,
    captures: Path | None = None,
    on_results: Callable[[Sequence[Result]], None] = lambda _: None,
) -> list[Result]:
    """Check behaviours in all versions that the broker offers; return the results in order.

    prefix: of the names of topics, groups and transactional ids. captures: a folder for the packets
    of each failure. on_results: called with the results of a behaviour when all its versions are
    checked; what it raises ends the run, after the checks in progress have cleaned up.

    Raises Unanswered if the broker cannot be reached.
    """
    versions = await offered(target)
    names = Names(prefix)
    free = asyncio.Semaphore(AT_ONCE)

    async def checked(behaviour: Behaviour, version: int) -> Result:
        async with free:
            return await check(target, behaviour, version, versions, names, captures)

    async def results_of(behaviour: Behaviour) -> Sequence[Result]:
        chosen = versions_of(behaviour, versions)
        if isinstance(chosen, str):
            return [Result(behaviour, None, Outcome.NOT_OFFERED, chosen)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(checked(behaviour, version)) for version in chosen]
        return [task.result() for task in tasks]

    running = [asyncio.ensure_future(results_of(behaviour)) for behaviour in behaviours]
    try:
        for done in asyncio.as_completed(running):
            on_results(await done)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return [result for task in running for result in task.result()]


async def check(
    target: Target,
    behaviour: Behaviour,
    version: int,
    versions: Mapping[ApiKey, range],
    names: Names,
    captures: Path | None,
) -> Result:
    """Check a behaviour in one version, and clean up after it, also if it is cancelled."""
    with recorded(captures, f"{names.prefix}-{api_name(behaviour.api)}-{version}") as recording:
        session = Session(target, bootstrap(target.values)[0], versions, names, recording.writer)
        outcome, detail = Outcome.PASSED, ""
        try:
            await behaviour.check(session, version)
        except NotOffered as error:
            outcome, detail = Outcome.NOT_OFFERED, str(error)
        except KafkaWireError as error:
            outcome, detail = Outcome.FAILED, str(error) or type(error).__name__
        except asyncio.CancelledError:
            session.disconnect()  # a response may be on its way, or never come
            await cleaned_up(session)
            raise
        exchanges = session.exchanges
        left = await cleaned_up(session)
        recording.kept = outcome is Outcome.FAILED
    kept = exchanges if recording.kept else ()
    return Result(behaviour, version, outcome, detail, kept, left, recording.path)


async def cleaned_up(session: Session) -> list[str]:
    """Clean up; what fails is named, not raised: the check has its own result."""
    try:
        return await session.clean_up()
    except KafkaWireError as error:
        return [str(error)]


@dataclass
class Recorded:
    """The capture of a check; removed unless it is kept."""

    writer: Recording | None
    path: Path | None
    kept: bool = False


@contextlib.contextmanager
def recorded(folder: Path | None, name: str) -> Iterator[Recorded]:
    """Record a check in a file of a folder, if there is one."""
    if folder is None:
        yield Recorded(None, None)
        return
    path = next(free for free in _paths(folder, name) if not free.exists())
    capture = Recorded(Recording(path), path)
    try:
        yield capture
    finally:
        assert capture.writer is not None
        capture.writer.close()
        if not capture.kept:
            path.unlink()
            capture.path = None


def _paths(folder: Path, name: str) -> Iterator[Path]:
    yield folder / f"{name}.pcap"
    number = 1
    while True:
        number += 1
        yield folder / f"{name}-{number}.pcap"
