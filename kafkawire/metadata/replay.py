"""Applies the records of `__cluster_metadata` to an image, one function per type of record.

A record either changes the image as Kafka's own controllers change theirs, or it is
`InvalidMetadataRecord` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..errors import InvalidMetadataRecord
from ..messages.access_control_entry_record import AccessControlEntryRecord
from ..messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from ..messages.clear_elr_record import ClearElrRecord
from ..messages.client_quota_record import ClientQuotaRecord
from ..messages.config_record import ConfigRecord
from ..messages.delegation_token_record import DelegationTokenRecord
from ..messages.feature_level_record import FeatureLevelRecord
from ..messages.fence_broker_record import FenceBrokerRecord
from ..messages.no_op_record import NoOpRecord
from ..messages.partition_change_record import PartitionChangeRecord
from ..messages.partition_record import PartitionRecord
from ..messages.producer_ids_record import ProducerIdsRecord
from ..messages.register_broker_record import RegisterBrokerRecord
from ..messages.register_controller_record import RegisterControllerRecord
from ..messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from ..messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from ..messages.remove_feature_level_record import RemoveFeatureLevelRecord
from ..messages.remove_topic_record import RemoveTopicRecord
from ..messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from ..messages.topic_record import TopicRecord
from ..messages.unfence_broker_record import UnfenceBrokerRecord
from ..messages.unregister_broker_record import UnregisterBrokerRecord
from ..messages.unregister_controller_record import UnregisterControllerRecord
from ..messages.user_scram_credential_record import UserScramCredentialRecord
from ..messages.zk_migration_state_record import ZkMigrationStateRecord
from ..primitives import Message
from .cluster_records import (
    acl_removed,
    acl_set,
    config_changed,
    feature_changed,
    feature_removed,
    producer_ids_assigned,
    quota_changed,
    scram_removed,
    scram_set,
    token_removed,
    token_set,
)
from .delta import MetadataDelta
from .image import MetadataImage
from .inapplicable import Inapplicable
from .node_records import (
    broker_changed,
    broker_fenced,
    broker_registered,
    broker_unregistered,
    controller_registered,
    controller_unregistered,
)
from .topic_records import (
    elr_cleared,
    partition_changed,
    partition_created,
    topic_created,
    topic_removed,
)


def replay(image: MetadataImage, record: Message, offset: int, delta: MetadataDelta) -> None:
    """Apply one record. Raises InvalidMetadataRecord."""
    apply = REPLAY.get(type(record))
    try:
        if apply is None:
            raise Inapplicable("not a record of metadata")
        apply(image, record, delta)
    except Inapplicable as error:
        raise InvalidMetadataRecord(str(error), type(record).__name__, offset) from None
    if isinstance(record, RegisterBrokerRecord):
        image.registered_at[record.broker_id] = offset
    image.offset = delta.offset = offset


def _no_change(_image: MetadataImage, _record: Message, _delta: MetadataDelta) -> None:
    """Apply a record that only moves the offset."""


REPLAY: Final[Mapping[type[Message], Callable[[MetadataImage, Any, MetadataDelta], None]]] = {
    AccessControlEntryRecord: acl_set,
    BrokerRegistrationChangeRecord: broker_changed,
    ClearElrRecord: elr_cleared,
    ClientQuotaRecord: quota_changed,
    ConfigRecord: config_changed,
    DelegationTokenRecord: token_set,
    FeatureLevelRecord: feature_changed,
    FenceBrokerRecord: broker_fenced,
    NoOpRecord: _no_change,
    PartitionChangeRecord: partition_changed,
    PartitionRecord: partition_created,
    ProducerIdsRecord: producer_ids_assigned,
    RegisterBrokerRecord: broker_registered,
    RegisterControllerRecord: controller_registered,
    RemoveAccessControlEntryRecord: acl_removed,
    RemoveDelegationTokenRecord: token_removed,
    RemoveFeatureLevelRecord: feature_removed,
    RemoveTopicRecord: topic_removed,
    RemoveUserScramCredentialRecord: scram_removed,
    TopicRecord: topic_created,
    UnfenceBrokerRecord: broker_fenced,
    UnregisterBrokerRecord: broker_unregistered,
    UnregisterControllerRecord: controller_unregistered,
    UserScramCredentialRecord: scram_set,
    ZkMigrationStateRecord: _no_change,
}
