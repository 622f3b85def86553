"""What becomes of the verification of an append by another broker."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kafkawire.broker.transactions.verification import Claim, Errors, TransactionVerifier
from kafkawire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafkawire.protocol import ErrorCode as E

PARTITION = ("t", 0)
TOKEN, COORDINATOR, PRODUCER_ID = 7, 2, 5


class Elsewhere:
    """Machines that send, and coordinators at another broker."""

    def send(self, *_: object) -> int:
        return TOKEN

    def leader_of(self, _transactional_id: str) -> tuple[None, int]:
        return None, COORDINATOR


def verifying() -> tuple[TransactionVerifier, list[Errors]]:
    """Begin a verification; its errors are appended to the list."""
    found: list[Errors] = []
    elsewhere = cast(Any, Elsewhere())
    verifier = TransactionVerifier(1, elsewhere)
    claim = Claim("x", PRODUCER_ID, 0, adds=False, abortable=True)
    verifier.verify(
        elsewhere, claim, frozenset({PARTITION}), lambda errors, _: found.append(errors), 0.0
    )
    assert found == []
    return verifier, found


def response(error: int, index: int = 0, top: int = 0) -> AddPartitionsToTxnResponse:
    row = AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
    topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[row])
    result = AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])
    return AddPartitionsToTxnResponse(error_code=top, results_by_transaction=[result])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (response(0), None),
        (response(E.INVALID_TXN_STATE), E.INVALID_TXN_STATE),
        (response(9999), E.UNKNOWN_SERVER_ERROR),
        (response(0, top=9999), E.UNKNOWN_SERVER_ERROR),
        (response(0, index=1), E.UNKNOWN_SERVER_ERROR),
        (None, E.NETWORK_EXCEPTION),
    ],
    ids=["verified", "error", "unknown error", "unknown error of all", "left out", "no response"],
)
def test_a_response(body: AddPartitionsToTxnResponse | None, error: E | None) -> None:
    verifier, found = verifying()
    assert verifier.arrived(TOKEN, body, 1.0)
    assert found == [{} if error is None else {PARTITION: error}]
    assert not verifier.arrived(TOKEN, body, 1.0)


def test_a_marker_that_comes_meanwhile_ends_the_transaction() -> None:
    verifier, found = verifying()
    verifier.ended(("t", 1), PRODUCER_ID)
    verifier.ended(PARTITION, PRODUCER_ID + 1)
    verifier.ended(PARTITION, PRODUCER_ID)
    verifier.arrived(TOKEN, response(0), 1.0)
    assert found == [{PARTITION: E.TRANSACTION_ABORTABLE}]


def test_while_the_coordinator_completes_the_transaction_before_the_client_tries_again() -> None:
    verifier, results = verifying()
    verifier.ended(PARTITION, PRODUCER_ID)
    verifier.arrived(TOKEN, response(E.CONCURRENT_TRANSACTIONS), 1.0)
    assert results == [{PARTITION: E.CONCURRENT_TRANSACTIONS}]
