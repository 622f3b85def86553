"""Restores a cluster from the `Persist` and `Trim` effects of an earlier one.

Law: the persisted effects, replayed in order, give the same topics, logs, leaders, configurations,
groups and committed offsets. Connections, sessions and delayed operations are lost.

    Persist of __cluster_metadata ─▶ topics, partitions, leaders, configurations, producer ids
    Persist of any other topic ────▶ its log and its producer states
    Trim ──────────────────────────▶ the bounds of a log
    then: leader elections, groups loaded from their partitions of __consumer_offsets
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ...configs import ResourceType, source_of
from ...messages.config_record import ConfigRecord
from ...messages.partition_change_record import PartitionChangeRecord
from ...messages.partition_record import PartitionRecord
from ...messages.producer_ids_record import ProducerIdsRecord
from ...messages.remove_topic_record import RemoveTopicRecord
from ...messages.topic_record import TopicRecord
from ...primitives import Message
from ...protocol.log_records import decode_log_record
from ...protocol.log_types import InternalLog
from ...records import Batch
from ..effects import Persist, Persisted, Trim
from ..log.partition_log import Stored
from ..topics import NO_LEADER, OFFSETS_TOPIC, Partition, Topic
from .controller import METADATA_LOG, Controller
from .leadership import leader_changed


def restore(controller: Controller, persisted: Iterable[Persisted], now: float) -> None:
    """Replay persisted effects into a new cluster. ValueError if they are inconsistent."""
    for each in persisted:
        if isinstance(each, Trim):
            _trim(controller, each)
        elif each.topic == METADATA_LOG:
            _metadata(controller, each)
        else:
            _append(controller, each)
    for partition in controller.topics.partitions():
        _elect(controller, partition, now)
    topic = controller.topics.get(OFFSETS_TOPIC)
    if topic is not None:
        for partition in topic.partitions:
            led = partition.leader_id != NO_LEADER
            controller.groups.leader_changed(partition.index, led, now)
        controller.groups.start_expiration(now)


def _partition(controller: Controller, effect: Persisted) -> Partition:
    found = controller.topics.partition(effect.topic, effect.partition)
    if found is None:
        raise ValueError(f"{effect.topic}-{effect.partition} has records but was never created")
    return found


def _trim(controller: Controller, effect: Trim) -> None:
    partition = _partition(controller, effect)
    if effect.log_end_offset < partition.log.log_end_offset:
        partition.log.truncate(effect.log_end_offset)
        partition.producers.forget_from(partition.log.log_end_offset)
    partition.log.delete_before(effect.log_start_offset)


def _append(controller: Controller, effect: Persist) -> None:
    partition = _partition(controller, effect)
    batch = Batch(effect.batch, 0, len(effect.batch))
    first = batch.base_offset
    if first < partition.log.log_end_offset:
        raise ValueError(f"{effect.topic}-{effect.partition}: duplicate offset {first}")
    stored = Stored(first, first + batch.last_offset_delta, batch.max_timestamp, effect.batch)
    partition.log.append(stored, batch.partition_leader_epoch)
    if batch.producer_id >= 0:
        partition.producers.note(batch, stored)


def _metadata(controller: Controller, effect: Persist) -> None:
    for record in Batch(effect.batch, 0, len(effect.batch)).records():
        read = decode_log_record(InternalLog.METADATA, record.key, record.value).value
        if read is None or read.message is None or type(read.message) not in _REPLAY:
            raise ValueError(f"{METADATA_LOG} offset {record.offset}: {read}")
        _REPLAY[type(read.message)](controller, read.message)
        controller.metadata.offset = record.offset + 1


def _elect(controller: Controller, partition: Partition, now: float) -> None:
    """Elect a leader among the brokers of the new cluster, which are all up."""
    partition.isr = [node for node in partition.replicas if node in controller.topics.alive]
    leader = partition.leader_id
    if leader not in partition.isr:
        leader = partition.isr[0] if partition.isr else NO_LEADER
    if leader != partition.leader_id:
        partition.move_to(leader)
        leader_changed(controller, partition, now)


# -- replay of one record of __cluster_metadata


def _topic(controller: Controller, topic_id: bytes) -> Topic:
    found = controller.topics.by_id(topic_id)
    if found is None:
        raise ValueError(f"{METADATA_LOG}: unknown topic id {topic_id.hex()}")
    return found


def _topic_created(controller: Controller, record: TopicRecord) -> None:
    controller.topics.add(record.name, record.topic_id)


def _partition_created(controller: Controller, record: PartitionRecord) -> None:
    topic = _topic(controller, record.topic_id)
    partition = Partition(
        topic.name,
        record.partition_id,
        list(record.replicas),
        list(record.isr),
        record.leader,
        record.leader_epoch,
    )
    controller.topics.append(topic, partition)


def _leader_changed(controller: Controller, record: PartitionChangeRecord) -> None:
    partition = _topic(controller, record.topic_id).partitions[record.partition_id]
    partition.replicas = list(record.replicas or partition.replicas)
    partition.isr = list(record.isr or ())
    partition.move_to(record.leader)


def _config_changed(controller: Controller, record: ConfigRecord) -> None:
    if record.resource_type != ResourceType.TOPIC:
        controller.context.settings.alter(
            record.name, record.value, source_of(record.resource_name)
        )
        return
    topic = controller.topics.get(record.resource_name)
    if topic is None:
        raise ValueError(f"{METADATA_LOG}: unknown topic {record.resource_name}")
    if record.value is None:
        topic.configs.pop(record.name, None)
    else:
        topic.configs[record.name] = record.value


def _topic_removed(controller: Controller, record: RemoveTopicRecord) -> None:
    controller.topics.delete(_topic(controller, record.topic_id))


def _producer_ids_reserved(controller: Controller, record: ProducerIdsRecord) -> None:
    controller.producer_ids.resume_from(record.next_producer_id)


_REPLAY: Final[Mapping[type[Message], Callable[[Controller, Any], None]]] = {
    TopicRecord: _topic_created,
    PartitionRecord: _partition_created,
    PartitionChangeRecord: _leader_changed,
    ConfigRecord: _config_changed,
    RemoveTopicRecord: _topic_removed,
    ProducerIdsRecord: _producer_ids_reserved,
}
