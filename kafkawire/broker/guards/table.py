"""Which checks guard which API: a row for each whose permissions are about parts of a request.

The others need one permission for the whole request, on the cluster: that of their row in `APIS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...messages.api_key import ApiKey
from ..apis import APIS
from ..security.permissions import Permission
from .checks import Check, any_of, each, each_resource, every, of_configs, shown, whole
from .cluster import ALTER_REASSIGNMENTS, DESCRIBE_SCRAM, ELECT_LEADERS, LIST_REASSIGNMENTS
from .envelope import envelope
from .fetches import FETCH, SHARE_FETCH
from .groups import DESCRIBE_GROUPS, FIND_COORDINATOR, GROUP_DESCRIBE, SYNC_GROUP
from .offsets import (
    ALTER_SHARE_OFFSETS,
    DELETE_SHARE_OFFSETS,
    GROUPS_OFFSETS,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SHARE_ACKNOWLEDGE,
)
from .streams import STREAMS_DESCRIBE, TOPOLOGY
from .tokens import CREATE_TOKEN, DESCRIBE_TOKENS
from .topics import CLUSTER, CREATE_TOPICS, DELETE_TOPICS, METADATA, TOPIC_PARTITIONS
from .transactions import (
    ADD_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    INIT_PRODUCER_ID,
    PRODUCE,
    TRANSACTION,
)

P = Permission
K = ApiKey
Checks = tuple[Check, ...]
MEMBER: Final = (whole(P.READ_GROUP, "group_id"),)
SUBSCRIBER: Final = (*MEMBER, every(P.DESCRIBE_TOPIC, "subscribed_topic_names"))
ALTERED: Final = of_configs(P.ALTER_CLUSTER_CONFIGS, P.ALTER_TOPIC_CONFIGS, P.ALTER_GROUP_CONFIGS)
DESCRIBED: Final = of_configs(
    P.DESCRIBE_CLUSTER_CONFIGS, P.DESCRIBE_TOPIC_CONFIGS, P.DESCRIBE_GROUP_CONFIGS
)
GUARDS: Final[Mapping[ApiKey, Checks]] = {
    K.PRODUCE: PRODUCE,
    K.FETCH: FETCH,
    K.LIST_OFFSETS: (each(P.DESCRIBE_TOPIC, "topics", "topics"),),
    K.METADATA: METADATA,
    K.OFFSET_COMMIT: (*MEMBER, each(P.READ_TOPIC, "topics", "topics")),
    K.OFFSET_FETCH: OFFSET_FETCH,
    K.FIND_COORDINATOR: FIND_COORDINATOR,
    **dict.fromkeys((K.JOIN_GROUP, K.HEARTBEAT, K.LEAVE_GROUP), MEMBER),
    K.SYNC_GROUP: SYNC_GROUP,
    K.DESCRIBE_GROUPS: DESCRIBE_GROUPS,
    K.LIST_GROUPS: (shown(P.DESCRIBE_GROUP, "groups", "group_id", unless=P.DESCRIBE_CLUSTER),),
    K.CREATE_TOPICS: CREATE_TOPICS,
    K.DELETE_TOPICS: DELETE_TOPICS,
    K.DELETE_RECORDS: (each(P.DELETE_TOPIC, "topics", "topics"),),
    K.INIT_PRODUCER_ID: INIT_PRODUCER_ID,
    K.OFFSET_FOR_LEADER_EPOCH: (
        each(P.DESCRIBE_TOPIC, "topics", "topics", "topic", unless=P.CLUSTER_ACTION),
    ),
    K.ADD_PARTITIONS_TO_TXN: ADD_PARTITIONS,
    K.ADD_OFFSETS_TO_TXN: (TRANSACTION, *MEMBER),
    K.END_TXN: (TRANSACTION,),
    K.WRITE_TXN_MARKERS: (any_of((P.ALTER_CLUSTER, P.CLUSTER_ACTION)),),
    K.TXN_OFFSET_COMMIT: (TRANSACTION, *MEMBER, each(P.READ_TOPIC, "topics", "topics")),
    K.DESCRIBE_CONFIGS: (each_resource(DESCRIBED, "results"),),
    K.ALTER_CONFIGS: (each_resource(ALTERED, "responses"),),
    K.INCREMENTAL_ALTER_CONFIGS: (each_resource(ALTERED, "responses"),),
    K.CREATE_PARTITIONS: (each(P.ALTER_TOPIC, "topics", "results"),),
    K.DELETE_GROUPS: (each(P.DELETE_GROUP, "groups_names", "results", None),),
    K.ELECT_LEADERS: ELECT_LEADERS,
    K.ALTER_PARTITION_REASSIGNMENTS: ALTER_REASSIGNMENTS,
    K.LIST_PARTITION_REASSIGNMENTS: LIST_REASSIGNMENTS,
    K.OFFSET_DELETE: OFFSET_DELETE,
    K.DESCRIBE_USER_SCRAM_CREDENTIALS: DESCRIBE_SCRAM,
    K.ENVELOPE: (envelope(lambda key: checks_of(key)),),
    K.CREATE_DELEGATION_TOKEN: CREATE_TOKEN,
    K.DESCRIBE_DELEGATION_TOKEN: DESCRIBE_TOKENS,
    K.DESCRIBE_CLUSTER: (CLUSTER,),
    K.DESCRIBE_PRODUCERS: (each(P.READ_TOPIC, "topics", "topics"),),
    K.DESCRIBE_TRANSACTIONS: DESCRIBE_TRANSACTIONS,
    K.LIST_TRANSACTIONS: (shown(P.DESCRIBE_TRANSACTION, "transaction_states", "transactional_id"),),
    K.CONSUMER_GROUP_HEARTBEAT: SUBSCRIBER,
    K.CONSUMER_GROUP_DESCRIBE: GROUP_DESCRIBE,
    K.DESCRIBE_TOPIC_PARTITIONS: TOPIC_PARTITIONS,
    K.SHARE_GROUP_HEARTBEAT: SUBSCRIBER,
    K.SHARE_GROUP_DESCRIBE: GROUP_DESCRIBE,
    K.SHARE_FETCH: SHARE_FETCH,
    K.SHARE_ACKNOWLEDGE: SHARE_ACKNOWLEDGE,
    K.STREAMS_GROUP_HEARTBEAT: (*MEMBER, TOPOLOGY),
    K.STREAMS_GROUP_DESCRIBE: STREAMS_DESCRIBE,
    K.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: MEMBER,
    K.DESCRIBE_SHARE_GROUP_OFFSETS: GROUPS_OFFSETS,
    K.ALTER_SHARE_GROUP_OFFSETS: ALTER_SHARE_OFFSETS,
    K.DELETE_SHARE_GROUP_OFFSETS: DELETE_SHARE_OFFSETS,
}
"""API -> its checks, in order."""


def checks_of(key: ApiKey) -> Checks:
    """Return the checks of an API: none for one that needs no permission."""
    checks = GUARDS.get(key)
    return checks if checks is not None else _WHOLE[key]


_WHOLE: Final = {
    key: tuple(map(whole, api.permissions)) for key, api in APIS.items() if key not in GUARDS
}
