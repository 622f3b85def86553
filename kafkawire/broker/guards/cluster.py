"""Checks of requests about the cluster whose refusal has the error at the top and in its parts."""

from __future__ import annotations

from typing import Any, Final

from ...messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ...messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from ...messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ...messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from ...messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ...messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from ...messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ...protocol import ErrorCode
from ..security.permissions import Permission
from .access import Access
from .checks import Check, Verdict, whole

P = Permission


def _alter_reassignments(
    body: AlterPartitionReassignmentsRequest, error: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=error.name,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=one.partition_index,
                        error_code=error,
                        error_message=error.name,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ],
    )


def _list_reassignments(
    body: ListPartitionReassignmentsRequest, error: ErrorCode
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error,
        error_message=error.name,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(partition_index=index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in body.topics or ()
        ],
    )


def _scram_credentials(
    body: DescribeUserScramCredentialsRequest, error: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=error,
        error_message=error.name,
        results=[
            DescribeUserScramCredentialsResult(
                user=each.name, error_code=error, error_message=error.name
            )
            for each in body.users or ()
        ],
    )


def _elect_leaders(access: Access, body: Any) -> Verdict:
    response: Any = whole(P.ALTER_CLUSTER).judge(access, body)
    if response is not None and access.request.version > 0:
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    verdict: Verdict = response
    return verdict


ELECT_LEADERS: Final = (Check((P.ALTER_CLUSTER,), _elect_leaders),)
ALTER_REASSIGNMENTS: Final = (whole(P.ALTER_CLUSTER, refuse=_alter_reassignments),)
LIST_REASSIGNMENTS: Final = (whole(P.DESCRIBE_CLUSTER, refuse=_list_reassignments),)
DESCRIBE_SCRAM: Final = (whole(P.DESCRIBE_CLUSTER, refuse=_scram_credentials),)
BETWEEN_BROKERS: Final = whole(
    P.CLUSTER_ACTION, refuse=lambda _, error: AddPartitionsToTxnResponse(error_code=error)
)
"""Of an AddPartitionsToTxn of a broker."""
