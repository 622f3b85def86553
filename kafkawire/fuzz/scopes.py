"""Which APIs a run may send: what a request of each may change."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ..messages.api_key import ApiKey


class Scope(Enum):
    """What requests of an API change.

    NOTHING: any values and any damage are harmless to others. NAMED: topics, groups and
    transactional ids that the request names, which are those of the run. CLUSTER: brokers, users,
    permissions, quotas, or what a broker does with other brokers.
    """

    NOTHING = "nothing"
    NAMED = "named"
    CLUSTER = "cluster"


_APIS: Final[Mapping[Scope, frozenset[ApiKey]]] = {
    Scope.NOTHING: frozenset(
        {
            ApiKey.FETCH,
            ApiKey.LIST_OFFSETS,
            ApiKey.OFFSET_FETCH,
            ApiKey.FIND_COORDINATOR,
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.LIST_GROUPS,
            ApiKey.SASL_HANDSHAKE,
            ApiKey.API_VERSIONS,
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            ApiKey.DESCRIBE_ACLS,
            ApiKey.DESCRIBE_CONFIGS,
            ApiKey.DESCRIBE_LOG_DIRS,
            ApiKey.SASL_AUTHENTICATE,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.DESCRIBE_QUORUM,
            ApiKey.FETCH_SNAPSHOT,
            ApiKey.DESCRIBE_CLUSTER,
            ApiKey.DESCRIBE_PRODUCERS,
            ApiKey.DESCRIBE_TRANSACTIONS,
            ApiKey.LIST_TRANSACTIONS,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            ApiKey.LIST_CONFIG_RESOURCES,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        }
    ),
    Scope.NAMED: frozenset(
        {
            ApiKey.PRODUCE,
            ApiKey.METADATA,
            ApiKey.OFFSET_COMMIT,
            ApiKey.JOIN_GROUP,
            ApiKey.HEARTBEAT,
            ApiKey.LEAVE_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS,
            ApiKey.DELETE_RECORDS,
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.END_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.ALTER_CONFIGS,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            ApiKey.CREATE_PARTITIONS,
            ApiKey.DELETE_GROUPS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.OFFSET_DELETE,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.PUSH_TELEMETRY,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        }
    ),
}
"""APIs that are in neither set change the cluster."""


def scope_of(api: ApiKey) -> Scope:
    """Return what requests of an API change."""
    return next((scope for scope, apis in _APIS.items() if api in apis), Scope.CLUSTER)
