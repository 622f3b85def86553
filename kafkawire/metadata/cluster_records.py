"""Applies the records of configs, features, quotas, producer ids, users and ACLs to an image.

What is removed and was never set does not apply, except a config, a feature or a quota.
"""

from __future__ import annotations

from ..messages.access_control_entry_record import AccessControlEntryRecord
from ..messages.client_quota_record import ClientQuotaRecord
from ..messages.config_record import ConfigRecord
from ..messages.delegation_token_record import DelegationTokenRecord
from ..messages.feature_level_record import FeatureLevelRecord
from ..messages.producer_ids_record import ProducerIdsRecord
from ..messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from ..messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from ..messages.remove_feature_level_record import RemoveFeatureLevelRecord
from ..messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from ..messages.user_scram_credential_record import UserScramCredentialRecord
from .delta import MetadataDelta
from .image import ConfigResource, MetadataImage
from .inapplicable import Inapplicable, removed


def config_changed(image: MetadataImage, record: ConfigRecord, delta: MetadataDelta) -> None:
    """Set or remove a dynamic value."""
    resource = ConfigResource(record.resource_type, record.resource_name)
    values = image.configs.setdefault(resource, {})
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if not values:
        del image.configs[resource]
    delta.configs[resource] = None


def feature_changed(image: MetadataImage, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
    """Finalise a level of a feature; 0 removes it."""
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level
    delta.features[record.name] = None


def feature_removed(
    image: MetadataImage, record: RemoveFeatureLevelRecord, delta: MetadataDelta
) -> None:
    """Remove a feature."""
    image.features.pop(record.name, None)
    delta.features[record.name] = None


def quota_changed(image: MetadataImage, record: ClientQuotaRecord, delta: MetadataDelta) -> None:
    """Set or remove a quota."""
    entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
    values = image.quotas.setdefault(entity, {})
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    if not values:
        del image.quotas[entity]
    delta.quotas[entity] = None


def producer_ids_assigned(
    image: MetadataImage, record: ProducerIdsRecord, delta: MetadataDelta
) -> None:
    """Take a block of producer ids."""
    if record.next_producer_id < image.next_producer_id:
        raise Inapplicable(
            f"next producer id {record.next_producer_id} is below {image.next_producer_id}"
        )
    image.next_producer_id = record.next_producer_id
    delta.producer_ids = True


def scram_set(
    image: MetadataImage, record: UserScramCredentialRecord, delta: MetadataDelta
) -> None:
    """Set the SCRAM credential of a user."""
    image.scram_credentials[record.name, record.mechanism] = record
    delta.scram_credentials[record.name, record.mechanism] = None


def scram_removed(
    image: MetadataImage, record: RemoveUserScramCredentialRecord, delta: MetadataDelta
) -> None:
    """Remove the SCRAM credential of a user."""
    removed(image.scram_credentials, (record.name, record.mechanism), "SCRAM credential")
    delta.scram_credentials[record.name, record.mechanism] = None


def acl_set(image: MetadataImage, record: AccessControlEntryRecord, delta: MetadataDelta) -> None:
    """Add an ACL."""
    image.acls[record.id] = record
    delta.acls[record.id] = None


def acl_removed(
    image: MetadataImage, record: RemoveAccessControlEntryRecord, delta: MetadataDelta
) -> None:
    """Remove an ACL."""
    removed(image.acls, record.id, "ACL")
    delta.acls[record.id] = None


def token_set(image: MetadataImage, record: DelegationTokenRecord, delta: MetadataDelta) -> None:
    """Set a delegation token."""
    image.delegation_tokens[record.token_id] = record
    delta.delegation_tokens[record.token_id] = None


def token_removed(
    image: MetadataImage, record: RemoveDelegationTokenRecord, delta: MetadataDelta
) -> None:
    """Remove a delegation token."""
    removed(image.delegation_tokens, record.token_id, "delegation token")
    delta.delegation_tokens[record.token_id] = None
