"""Checks of producers and their transactions."""

from __future__ import annotations

from typing import Any, Final

from ...messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from ...messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ...messages.describe_transactions_response import DescribeTransactionsResponse
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.produce_request import ProduceRequest
from ...protocol import ErrorCode
from ...transactions.responses import partitions_of, topic_results
from ..security.operations import AclResource, Operation
from ..security.permissions import Permission
from ..topics import INTERNAL
from .access import ERRORS, Access
from .checks import Check, Partly, Verdict, each, whole
from .cluster import BETWEEN_BROKERS

E, P = ErrorCode, Permission
BETWEEN_BROKERS_FROM: Final = 4
"""From this version on AddPartitionsToTxn is sent by brokers only."""
TRANSACTION: Final = whole(P.WRITE_TRANSACTION, "transactional_id")

# -- Produce


def _produce(access: Access, body: ProduceRequest) -> Verdict:
    """Check the transactional id, if there is one."""
    return None if body.transactional_id is None else TRANSACTION.judge(access, body)


PRODUCE: Final = (
    Check((P.WRITE_TRANSACTION,), _produce),
    each(P.WRITE_TOPIC, "topic_data", "responses"),
)

# -- InitProducerId


def _init_producer_id(access: Access, body: InitProducerIdRequest) -> Verdict:
    """Check the transactional id; without one, who may write to any topic may be idempotent."""
    name = body.transactional_id
    if name is None:
        if access.may(P.IDEMPOTENT_WRITE) or access.may_on_any(P.WRITE_TOPIC):
            return None
        return access.refusal(body, ERRORS[AclResource.CLUSTER])
    of_id = AclResource.TRANSACTIONAL_ID
    if access.may(P.WRITE_TRANSACTION, name) and (
        not body.enable2_pc
        or access.authorizer.may(access.caller, Operation.TWO_PHASE_COMMIT, of_id, name)
    ):
        return None
    return access.refusal(body, ERRORS[of_id])


INIT_PRODUCER_ID: Final = (
    Check((P.WRITE_TRANSACTION, P.IDEMPOTENT_WRITE, P.WRITE_TOPIC), _init_producer_id),
)

# -- AddPartitionsToTxn


def _add_partitions(access: Access, body: AddPartitionsToTxnRequest) -> Verdict:
    """Refuse all partitions if one may not be written; brokers need no permission for topics."""
    if access.request.version >= BETWEEN_BROKERS_FROM:
        return BETWEEN_BROKERS.judge(access, body)
    refusal = whole(P.WRITE_TRANSACTION, "v3_and_below_transactional_id").judge(access, body)
    if refusal is not None:
        return refusal
    names = (topic.name for topic in body.v3_and_below_topics)
    allowed, _ = access.split(P.WRITE_TOPIC, names, lambda name: name)
    writable = set(allowed) - INTERNAL
    partitions = partitions_of(body.v3_and_below_topics)
    if all(name in writable for name, _ in partitions):
        return None
    topics = access.broker.metadata.topics

    def error_of(name: str, index: int) -> ErrorCode:
        if name not in writable:
            return E.TOPIC_AUTHORIZATION_FAILED
        is_there = topics.partition(name, index) is not None
        return E.OPERATION_NOT_ATTEMPTED if is_there else E.UNKNOWN_TOPIC_OR_PARTITION

    errors = {key: error_of(*key) for key in partitions}
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topic_results(errors))


ADD_PARTITIONS: Final = (
    Check((P.WRITE_TRANSACTION, P.WRITE_TOPIC, P.CLUSTER_ACTION), _add_partitions),
)

# -- DescribeTransactions


def _visible_topics(access: Access, body: Any) -> Verdict:
    """Leave out the topics of transactions that the caller may not describe."""

    def complete(response: DescribeTransactionsResponse) -> None:
        for state in response.transaction_states:
            state.topics, _ = access.split(
                P.DESCRIBE_TOPIC, state.topics, lambda topic: topic.topic
            )

    return Partly(body, complete)


DESCRIBE_TRANSACTIONS: Final = (
    each(P.DESCRIBE_TRANSACTION, "transactional_ids", "transaction_states", None),
    Check((P.DESCRIBE_TOPIC,), _visible_topics),
)
