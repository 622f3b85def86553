"""Which request has which operation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.alter_client_quotas_request import AlterClientQuotasRequest
from ...messages.alter_configs_request import AlterConfigsRequest
from ...messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from ...messages.alter_partition_request import AlterPartitionRequest
from ...messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from ...messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from ...messages.broker_heartbeat_request import BrokerHeartbeatRequest
from ...messages.broker_registration_request import BrokerRegistrationRequest
from ...messages.controller_registration_request import ControllerRegistrationRequest
from ...messages.create_acls_request import CreateAclsRequest
from ...messages.create_partitions_request import CreatePartitionsRequest
from ...messages.create_topics_request import CreateTopicsRequest
from ...messages.delete_acls_request import DeleteAclsRequest
from ...messages.delete_topics_request import DeleteTopicsRequest
from ...messages.elect_leaders_request import ElectLeadersRequest
from ...messages.envelope_request import EnvelopeRequest
from ...messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from ...messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from ...messages.unregister_broker_request import UnregisterBrokerRequest
from ...messages.unregister_controller_request import UnregisterControllerRequest
from ...messages.update_features_request import UpdateFeaturesRequest
from ...metadata import MetadataImage
from ...primitives import Message
from ..state import ControllerState
from .acls import create_acls, delete_acls
from .alter_configs import alter_configs, incremental_alter_configs
from .alter_partition import alter_partition
from .broker_heartbeat import heartbeat
from .broker_registration import register, unregister
from .change_topics import create_partitions, delete_topics
from .client_quotas import alter_client_quotas
from .controller_registration import register_controller, unregister_controller
from .create_topics import create_topics
from .delegation_tokens import enveloped
from .elect_leaders import elect_leaders
from .producer_ids import allocate
from .reassignments import alter_reassignments, list_reassignments
from .replica_directories import assign_replicas_to_dirs
from .scram_credentials import alter_scram_credentials
from .update_features import update_features

Work = Generator[None, None, Message]
"""An operation that yields where other events may be handled; it returns the response."""
Operation = Callable[[ControllerState, Any, int, float], Message | Work]
WRITES: Final[Mapping[type[Message], Operation]] = {
    AllocateProducerIdsRequest: allocate,
    AlterClientQuotasRequest: alter_client_quotas,
    AlterConfigsRequest: alter_configs,
    AlterPartitionReassignmentsRequest: alter_reassignments,
    AlterPartitionRequest: alter_partition,
    AlterUserScramCredentialsRequest: alter_scram_credentials,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    BrokerHeartbeatRequest: heartbeat,
    BrokerRegistrationRequest: register,
    ControllerRegistrationRequest: register_controller,
    CreateAclsRequest: create_acls,
    CreatePartitionsRequest: create_partitions,
    CreateTopicsRequest: create_topics,
    DeleteAclsRequest: delete_acls,
    DeleteTopicsRequest: delete_topics,
    ElectLeadersRequest: elect_leaders,
    EnvelopeRequest: enveloped,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    UnregisterBrokerRequest: unregister,
    UnregisterControllerRequest: unregister_controller,
    UpdateFeaturesRequest: update_features,
}
"""Request -> the operation that writes records and makes the response."""

READS: Final[Mapping[type[Message], Callable[[MetadataImage, Any], Message]]] = {
    ListPartitionReassignmentsRequest: list_reassignments,
}
"""Request -> what reads the committed image."""
