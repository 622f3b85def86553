"""Responses that refuse a whole request: this controller is not active, or was it until now.

The error stands where a client of that API looks for it: at the top, or at every item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...messages import alter_client_quotas_response as quotas
from ...messages import alter_configs_response as configs
from ...messages import alter_user_scram_credentials_response as scram
from ...messages import create_acls_response as acls
from ...messages import create_partitions_response as partitions
from ...messages import create_topics_response as topics
from ...messages import delete_acls_response as deleted_acls
from ...messages import delete_topics_response as deleted
from ...messages import incremental_alter_configs_response as incremental
from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from ...messages.alter_client_quotas_request import AlterClientQuotasRequest
from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from ...messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from ...messages.alter_partition_request import AlterPartitionRequest
from ...messages.alter_partition_response import AlterPartitionResponse
from ...messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from ...messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from ...messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from ...messages.broker_heartbeat_request import BrokerHeartbeatRequest
from ...messages.broker_heartbeat_response import BrokerHeartbeatResponse
from ...messages.broker_registration_request import BrokerRegistrationRequest
from ...messages.broker_registration_response import BrokerRegistrationResponse
from ...messages.controller_registration_request import ControllerRegistrationRequest
from ...messages.controller_registration_response import ControllerRegistrationResponse
from ...messages.create_acls_request import CreateAclsRequest
from ...messages.create_partitions_request import CreatePartitionsRequest
from ...messages.create_topics_request import CreateTopicsRequest
from ...messages.delete_acls_request import DeleteAclsRequest
from ...messages.delete_topics_request import DeleteTopicsRequest
from ...messages.describe_quorum_response import DescribeQuorumResponse
from ...messages.elect_leaders_request import ElectLeadersRequest
from ...messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ...messages.envelope_request import EnvelopeRequest
from ...messages.envelope_response import EnvelopeResponse
from ...messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from ...messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from ...messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from ...messages.unregister_broker_request import UnregisterBrokerRequest
from ...messages.unregister_broker_response import UnregisterBrokerResponse
from ...messages.unregister_controller_request import UnregisterControllerRequest
from ...messages.unregister_controller_response import UnregisterControllerResponse
from ...messages.update_features_request import UpdateFeaturesRequest
from ...messages.update_features_response import UpdateFeaturesResponse
from ...primitives import Message
from ...protocol import ErrorCode
from ...raft.client import REQUESTS as QUORUM_REQUESTS

Refusal = Callable[[Any, ErrorCode], Message]


def _topics(body: CreateTopicsRequest, error: ErrorCode) -> Message:
    return topics.CreateTopicsResponse(
        topics=[
            topics.CreatableTopicResult(name=each.name, error_code=error, error_message=error.name)
            for each in body.topics
        ]
    )


def _partitions(body: CreatePartitionsRequest, error: ErrorCode) -> Message:
    return partitions.CreatePartitionsResponse(
        results=[
            partitions.CreatePartitionsTopicResult(
                name=each.name, error_code=error, error_message=error.name
            )
            for each in body.topics
        ]
    )


def _deleted(body: DeleteTopicsRequest, error: ErrorCode) -> Message:
    by_name = [deleted.DeletableTopicResult(name=name) for name in body.topic_names]
    by_state = [
        deleted.DeletableTopicResult(name=each.name, topic_id=each.topic_id) for each in body.topics
    ]
    results = [*by_name, *by_state]
    for each in results:
        each.error_code, each.error_message = error, error.name
    return deleted.DeleteTopicsResponse(responses=results)


def _elections(body: ElectLeadersRequest, error: ErrorCode) -> ElectLeadersResponse:
    """Refuse each partition; an election of all of them has the error at the top, from v1 on."""
    if body.topic_partitions is None:
        return ElectLeadersResponse(error_code=error)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error, error_message=None)
                    for index in topic.partitions
                ],
            )
            for topic in body.topic_partitions
        ]
    )


def _incremental(body: IncrementalAlterConfigsRequest, error: ErrorCode) -> Message:
    return incremental.IncrementalAlterConfigsResponse(
        responses=[
            incremental.AlterConfigsResourceResponse(
                error_code=error,
                error_message=error.name,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        ]
    )


def _configs(body: AlterConfigsRequest, error: ErrorCode) -> Message:
    return configs.AlterConfigsResponse(
        responses=[
            configs.AlterConfigsResourceResponse(
                error_code=error,
                error_message=error.name,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        ]
    )


def _quotas(body: AlterClientQuotasRequest, error: ErrorCode) -> Message:
    return quotas.AlterClientQuotasResponse(
        entries=[
            quotas.EntryData(
                error_code=error,
                error_message=error.name,
                entity=[
                    quotas.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in each.entity
                ],
            )
            for each in body.entries
        ]
    )


def _scram(body: AlterUserScramCredentialsRequest, error: ErrorCode) -> Message:
    users = dict.fromkeys(each.name for each in body.deletions)
    users |= dict.fromkeys(each.name for each in body.upsertions)
    return scram.AlterUserScramCredentialsResponse(
        results=[
            scram.AlterUserScramCredentialsResult(
                user=user, error_code=error, error_message=error.name
            )
            for user in users
        ]
    )


def _acls(body: CreateAclsRequest, error: ErrorCode) -> Message:
    result = acls.AclCreationResult(error_code=error, error_message=error.name)
    return acls.CreateAclsResponse(results=[result] * len(body.creations))


def _deleted_acls(body: DeleteAclsRequest, error: ErrorCode) -> Message:
    result = deleted_acls.DeleteAclsFilterResult(error_code=error, error_message=error.name)
    return deleted_acls.DeleteAclsResponse(filter_results=[result] * len(body.filters))


def _top(response: Callable[..., Message]) -> Refusal:
    return lambda _body, error: response(error_code=error)


def _top_with_text(response: Callable[..., Message]) -> Refusal:
    return lambda _body, error: response(error_code=error, error_message=error.name)


REFUSALS: Final[Mapping[type[Message], Refusal]] = {
    AllocateProducerIdsRequest: _top(AllocateProducerIdsResponse),
    AlterClientQuotasRequest: _quotas,
    AlterConfigsRequest: _configs,
    AlterPartitionReassignmentsRequest: _top_with_text(AlterPartitionReassignmentsResponse),
    AlterPartitionRequest: _top(AlterPartitionResponse),
    AlterUserScramCredentialsRequest: _scram,
    AssignReplicasToDirsRequest: _top(AssignReplicasToDirsResponse),
    BrokerHeartbeatRequest: _top(BrokerHeartbeatResponse),
    BrokerRegistrationRequest: _top(BrokerRegistrationResponse),
    ControllerRegistrationRequest: _top_with_text(ControllerRegistrationResponse),
    CreateAclsRequest: _acls,
    CreatePartitionsRequest: _partitions,
    CreateTopicsRequest: _topics,
    DeleteAclsRequest: _deleted_acls,
    DeleteTopicsRequest: _deleted,
    ElectLeadersRequest: _elections,
    EnvelopeRequest: _top(EnvelopeResponse),
    IncrementalAlterConfigsRequest: _incremental,
    ListPartitionReassignmentsRequest: _top_with_text(ListPartitionReassignmentsResponse),
    UnregisterBrokerRequest: _top_with_text(UnregisterBrokerResponse),
    UnregisterControllerRequest: _top_with_text(UnregisterControllerResponse),
    UpdateFeaturesRequest: _top_with_text(UpdateFeaturesResponse),
}
"""Request -> its response with an error for all of it."""


def refusal(body: Message, error: ErrorCode) -> Message:
    """Make the response that refuses a request. KeyError for one that no controller serves."""
    return REFUSALS[type(body)](body, error)


def is_refused(request: Message, response: Message | None) -> bool:
    """Return whether no active controller has responded."""
    if response is None:
        return True
    code = getattr(response, "error_code", None)
    if isinstance(response, DescribeQuorumResponse) and not code:
        code = response.topics[0].partitions[0].error_code
    if code:
        return code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if type(request) in QUORUM_REQUESTS or type(request) not in REFUSALS:
        return False
    refused = refusal(request, ErrorCode.NOT_CONTROLLER)
    return response == refused != refusal(request, ErrorCode.NONE)  # equal if it names nothing
