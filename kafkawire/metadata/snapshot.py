"""Writes an image as the records of a snapshot.

Replayed into an empty image, they give the same image; the features come first, as they decide
on the versions of all others.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..messages.client_quota_record import ClientQuotaRecord, EntityData
from ..messages.config_record import ConfigRecord
from ..messages.feature_level_record import FeatureLevelRecord
from ..messages.producer_ids_record import ProducerIdsRecord
from ..messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from ..messages.topic_record import TopicRecord
from ..primitives import Message
from .image import METADATA_VERSION, MetadataImage
from .registrations import BrokerRegistration
from .versions import NEWEST, VersionedRecord, versioned


def snapshot(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Write the records of an image."""
    level = image.features.get(METADATA_VERSION, NEWEST)
    for record in _records(image):
        yield versioned(record, level)


def _records(image: MetadataImage) -> Iterator[Message]:
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from image.controllers.values()
    yield from map(registration_record, image.brokers.values())
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in topic.partitions.items():
            yield partition.record(topic.topic_id, index)
    yield from _configs(image)
    if image.next_producer_id:
        yield ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()
    yield from image.acls.values()


def _configs(image: MetadataImage) -> Iterator[Message]:
    for resource, values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )
    for entity, quotas in image.quotas.items():
        parts = sorted(entity, key=lambda part: part[0])
        for key, quota in quotas.items():
            yield ClientQuotaRecord(
                entity=[EntityData(entity_type=type, entity_name=name) for type, name in parts],
                key=key,
                value=quota,
                remove=False,
            )


def registration_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    """Make the record of a broker as it is registered."""
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, low, high in broker.features
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if broker.cordoned is None else list(broker.cordoned),
    )
