"""The tables of transactions: total, legal, in the docs; and the machine does what they say."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final

import pytest

from kafkawire.broker import Fault
from kafkawire.client.cluster import Broker
from kafkawire.client.config import read_config
from kafkawire.client.group_metadata import ConsumerGroupMetadata
from kafkawire.client.producer import (
    PRODUCER_KEYS,
    BeginTransaction,
    Failure,
    InitTransactions,
    SendOffsets,
    TransactionFailed,
    producer_settings,
)
from kafkawire.client.producer.events import TransactionEvent
from kafkawire.client.producer.transactions.outcomes import (
    EXCEPTIONS,
    OTHERS,
    OUTCOMES,
    SEVERITY,
    TransactionOutcome,
    outcome_of,
)
from kafkawire.client.producer.transactions.states import (
    ADMISSION,
    LEGAL,
    Admission,
    Call,
    TransactionState,
)
from kafkawire.client.producer.transactions.transaction_manager import (
    CALLS,
    FAILURES,
    TransactionManager,
)
from kafkawire.errors import LocalProtocolError
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode
from tests.client.consumer.test_subscription import View
from tests.conftest import ROOT

from .transactional import VERSION_1, Stage, abort, commit, offsets

PAGE: Final = ROOT / "docs" / "client.md"
S, O = TransactionState, TransactionOutcome  # noqa: E741 - as in the tables
RETRIED: Final = (O.RETRY, O.FIND_COORDINATOR)
FATAL: Final = (O.FATAL, O.FENCED)
FAILED: Final = Failure(ErrorCode.TRANSACTION_ABORTABLE, None, "as a test wants")
NAMES: Final = {
    ApiKey.INIT_PRODUCER_ID: "InitProducerId",
    ApiKey.ADD_PARTITIONS_TO_TXN: "AddPartitionsToTxn",
    ApiKey.ADD_OFFSETS_TO_TXN: "AddOffsetsToTxn",
    ApiKey.TXN_OFFSET_COMMIT: "TxnOffsetCommit",
    ApiKey.END_TXN: "EndTxn",
    ApiKey.PRODUCE: "Produce",
}
ABORTABLE: Final = "all that are abortable elsewhere"
OF_CALLS: Final[Mapping[Call, TransactionEvent]] = {
    Call.INIT: InitTransactions(1),
    Call.BEGIN: BeginTransaction(1),
    Call.SEND_OFFSETS: SendOffsets(1, ConsumerGroupMetadata("g"), ()),
    Call.COMMIT: commit(1),
    Call.ABORT: abort(1),
}


def manager(state: TransactionState) -> TransactionManager:
    values = read_config(PRODUCER_KEYS, {"bootstrap.servers": "h:1", "transactional.id": "x"})
    view = View({}, {1: Broker(1, "h", 1)})
    made = TransactionManager("x", producer_settings(values), view, Random(1).random, "p")
    made.state, made.failure = state, FAILED
    return made


def test_states_follow_only_the_table() -> None:
    assert set(LEGAL) == set(S)
    for before in S:
        for after in S:
            if after in LEGAL[before]:
                manager(before)._transition(after)
            else:
                with pytest.raises(LocalProtocolError):
                    manager(before)._transition(after)


def test_every_call_in_every_state() -> None:
    assert set(ADMISSION) == set(S)
    assert set(CALLS) == {type(event) for event in OF_CALLS.values()}
    for state, row in ADMISSION.items():
        assert set(row) == set(Call)
        for call, event in OF_CALLS.items():
            machine = manager(state)
            if row[call] is Admission.ILLEGAL:
                with pytest.raises(LocalProtocolError, match=f"{call.value} in state"):
                    machine.handle(event)
                assert machine.state is state
                continue
            machine.handle(event)
            failed = [each for each in machine._out if isinstance(each, TransactionFailed)]
            assert bool(failed) is (row[call] is Admission.FAILED)
            assert machine.state is state or row[call] is Admission.ALLOWED
            assert machine.state is state or machine.state in LEGAL[state]


def test_every_error_code_has_an_outcome() -> None:
    assert set(OTHERS) == set(NAMES)
    assert set(SEVERITY) == set(O) == {*RETRIED, *FAILURES}
    for api in NAMES:
        for code in ErrorCode:
            found = outcome_of(api, code)
            if code in EXCEPTIONS.get(api, {}):
                assert found is EXCEPTIONS[api][code]
            elif code in OUTCOMES:
                assert found is OUTCOMES[code]
            else:
                assert found is (O.RETRY if code.retriable else OTHERS[api])


CASES: Final = [
    (api, code)
    for api in NAMES
    if api is not ApiKey.PRODUCE
    for code in {**OUTCOMES, **EXCEPTIONS.get(api, {}), ErrorCode.UNKNOWN_SERVER_ERROR: None}
]


@pytest.mark.parametrize("release", [None, VERSION_1], ids=["version 2", "version 1"])
@pytest.mark.parametrize(("api", "code"), CASES, ids=lambda value: value.name)
def test_a_coordinator_s_error_has_the_outcome_of_the_table(
    api: ApiKey, code: ErrorCode, release: str | None
) -> None:
    """It is retried, and nothing is seen of it; or aborted, and the next one commits; or fatal."""
    stage = Stage(release)
    user = stage.producer("p")
    fault = Fault(NAMES[api], nth=1, error=code)
    stage.simulation.trouble(fault)
    calls = [InitTransactions, BeginTransaction, offsets(3), commit]
    results = []
    for each in calls:
        if each is commit:
            user.send(b"a")
        results.append(user.call(each))
        if isinstance(results[-1], TransactionFailed):
            break
    if not fault.hit:
        explicit = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN)
        assert release is None
        assert api in explicit
        return
    failed = [each for each in results if isinstance(each, TransactionFailed)]
    outcome = outcome_of(api, code)
    assert bool(failed) is (outcome not in RETRIED)
    if failed:
        assert failed[0].failure.code is code
        assert failed[0].fatal is (outcome in FATAL)
    if outcome in FATAL:
        assert user.state is S.FATAL_ERROR
        return
    if outcome is O.NEW_EPOCH:  # the coordinator does know the producer: see test_transactions
        assert user.state is S.ABORTABLE_ERROR
        return
    if failed:
        user.done(abort)
    user.begin()
    user.send(b"b")
    user.done(commit)
    assert stage.committed() == ([b"b"] if failed else [b"a", b"b"])


def states_drawn() -> str:
    rows = [f"    {a.value} --> {b.value}" for a, after in LEGAL.items() for b in after]
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(sorted(rows)) + "\n```"


def admission_table() -> str:
    lines = [
        f"| state | {' | '.join(f'`{call.value}`' for call in Call)} |",
        f"| --- |{' --- |' * len(Call)}",
    ]
    for state, row in ADMISSION.items():
        cells = " | ".join(row[call].name.lower() for call in Call)
        lines.append(f"| {state.value} | {cells} |")
    return "\n".join(lines)


def outcome_table() -> str:
    lines = ["| outcome | error codes |", "| --- | --- |"]
    for outcome in O:
        cells = [_codes(OUTCOMES, outcome)]
        cells += [
            f"of {NAMES[api]}: {ABORTABLE if api is ApiKey.INIT_PRODUCER_ID else codes}"
            for api, table in EXCEPTIONS.items()
            if (codes := _codes(table, outcome))
        ]
        others = [NAMES[api] for api, found in OTHERS.items() if found is outcome]
        if others:
            cells.append(f"of {', '.join(others)}: all others that are not retriable")
        lines.append(f"| {outcome.value} | {'; '.join(filter(None, cells))} |")
    return "\n".join(lines)


def _codes(table: Mapping[ErrorCode, TransactionOutcome], outcome: TransactionOutcome) -> str:
    return ", ".join(code.name for code, found in table.items() if found is outcome)


@pytest.mark.parametrize("drawn", [states_drawn, admission_table, outcome_table])
def test_the_docs_have_the_tables(drawn: object) -> None:
    assert callable(drawn)
    assert drawn() in PAGE.read_text(encoding="utf-8"), drawn()
