"""What the configuration keys do that have an effect in this broker, in words of ours.

DescribeConfigs returns it on request; it is null for keys that are stored only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .keys import GROUP_CONFIGS, TOPIC_CONFIGS

TOPIC_DOCUMENTATION: Final[Mapping[str, str]] = {
    "cleanup.policy": "Whether old records are deleted, compacted, both, or kept.",
    "compression.type": "The codec in which batches are stored; producer: that of the producer.",
    "delete.retention.ms": "How long compaction keeps a tombstone.",
    "file.delete.delay.ms": "The time from the deletion of a segment to that of its files.",
    "flush.messages": "After how many records a log is flushed to disk.",
    "flush.ms": "After how long a log is flushed to disk.",
    "follower.replication.throttled.replicas": "Replicas whose fetching is throttled.",
    "index.interval.bytes": "How many bytes of records there are for each entry of the index.",
    "leader.replication.throttled.replicas": "Replicas to which sending is throttled.",
    "max.compaction.lag.ms": "After how long a record is compacted at the latest.",
    "max.message.bytes": "How many bytes a record batch has at most.",
    "message.timestamp.after.max.ms": "How far a record may be dated ahead of the broker's clock.",
    "message.timestamp.before.max.ms": "How far a record may be dated behind the broker's clock.",
    "message.timestamp.type": "Whether records have the producer's timestamp or the broker's.",
    "min.cleanable.dirty.ratio": "The share of a log that is new before it is compacted.",
    "min.compaction.lag.ms": "After how long a record is compacted at the earliest.",
    "min.insync.replicas": "How many replicas must be in sync for a write with acks=all.",
    "retention.bytes": "How large a partition may grow before old segments are deleted; -1: any.",
    "retention.ms": "After how long segments are deleted; -1: never.",
    "segment.bytes": "How large a segment may grow.",
    "segment.index.bytes": "How large the index of a segment may grow.",
    "segment.ms": "After how long a new segment begins.",
    "unclean.leader.election.enable": "Whether a replica that lost records may become leader.",
}
_CONSUMER_GROUP: Final = {
    "assignment.interval.ms": "The least time between two assignments of a consumer group.",
    "heartbeat.interval.ms": "The time between two heartbeats of a member of a consumer group.",
    "session.timeout.ms": "After how long without heartbeat a consumer group loses a member.",
}
_SHARE_GROUP: Final = {
    "assignment.interval.ms": "The least time between two assignments of a share group.",
    "delivery.count.limit": "How often a share group gets a record at most.",
    "heartbeat.interval.ms": "The time between two heartbeats of a member of a share group.",
    "partition.max.record.locks": "How many records of a partition are in flight at most.",
    "record.lock.duration.ms": "How long a member has to acknowledge a record.",
    "session.timeout.ms": "After how long without heartbeat a share group loses a member.",
}
GROUP_DOCUMENTATION: Final[Mapping[str, str]] = {
    **{f"consumer.{name}": text for name, text in _CONSUMER_GROUP.items()},
    **{f"share.{name}": text for name, text in _SHARE_GROUP.items()},
    "share.auto.offset.reset": "Where a share group begins to read a partition.",
    "share.isolation.level": "Whether records of open and aborted transactions are left out.",
    "share.renew.acknowledge.enable": "Whether members may renew the lock of a record.",
}
_DOCUMENTED: Final = (
    (TOPIC_CONFIGS, TOPIC_DOCUMENTATION),
    (GROUP_CONFIGS, GROUP_DOCUMENTATION),
)
BROKER_DOCUMENTATION: Final[Mapping[str, str]] = {
    **{
        synonym.name: documentation[name]
        for keys, documentation in _DOCUMENTED
        for name in documentation
        for synonym in keys[name].synonyms
    },
    "authorizer.class.name": "The class that checks ACLs; empty: everybody may do everything.",
    "auto.create.topics.enable": "Whether topics are created for clients that name them.",
    "auto.leader.rebalance.enable": "Whether leadership goes back to preferred replicas.",
    "broker.heartbeat.interval.ms": "The time between two heartbeats of a broker.",
    "broker.rack": "The rack that a broker is in.",
    "broker.session.timeout.ms": "After how long without heartbeat a broker is fenced.",
    "connections.max.idle.ms": "After how long without a request a connection is closed.",
    "default.replication.factor": "The replicas of partitions of a topic that names no number.",
    "delegation.token.expiry.time.ms": "How long a token is valid unless it is renewed.",
    "delegation.token.max.lifetime.ms": "How long a token can be renewed.",
    "delegation.token.secret.key": "The key that tokens are signed with; all nodes have the same.",
    "fetch.max.bytes": "The most bytes of records in a Fetch response.",
    "group.consumer.assignors": "The assignors of consumer groups, the default first.",
    "group.consumer.max.size": "How many members a consumer group has at most.",
    "group.consumer.migration.policy": "Which groups change to another protocol by themselves.",
    "group.initial.rebalance.delay.ms": "How long a new group waits for further members.",
    "group.max.session.timeout.ms": "The longest session timeout of a classic group's member.",
    "group.max.size": "How many members a classic group has at most.",
    "group.min.session.timeout.ms": "The shortest session timeout of a classic group's member.",
    "group.share.max.share.sessions": "How many share sessions there are at most.",
    "group.share.max.size": "How many members a share group has at most.",
    "leader.imbalance.check.interval.seconds": "How often preferred leaders are looked for.",
    "log.cleaner.backoff.ms": "How long compaction waits when nothing is to be compacted.",
    "log.flush.scheduler.interval.ms": "How often logs are looked at that may have to be flushed.",
    "log.retention.check.interval.ms": "How often segments are looked for that are to be deleted.",
    "max.connection.creation.rate": "How many connections are accepted in a second.",
    "max.connections": "How many connections a broker has at most.",
    "max.connections.per.ip": "How many connections one address has at most.",
    "max.incremental.fetch.session.cache.slots": "How many fetch sessions are remembered.",
    "num.partitions": "The partitions of a topic that names no number.",
    "offset.metadata.max.bytes": "The largest metadata of a committed offset.",
    "offsets.commit.timeout.ms": "How long a commit waits for replicas.",
    "offsets.retention.check.interval.ms": "How often expired offsets are looked for.",
    "offsets.retention.minutes": "How long offsets are kept of a group without members.",
    "offsets.topic.num.partitions": "The partitions of __consumer_offsets.",
    "offsets.topic.replication.factor": "The replicas of partitions of __consumer_offsets.",
    "producer.id.expiration.ms": "After how long an idle producer's sequence is forgotten.",
    "queued.max.request.bytes": "How many bytes of requests are buffered; -1: any number.",
    "replica.fetch.wait.max.ms": "How long a follower's Fetch waits for records.",
    "replica.lag.time.max.ms": "After how long a follower that does not catch up is out of sync.",
    "sasl.enabled.mechanisms": "The SASL mechanisms with which clients authenticate.",
    "socket.request.max.bytes": "The largest request.",
    "ssl.principal.mapping.rules": "Rules that make a principal of a certificate's subject.",
    "telemetry.max.bytes": "The largest push of the metrics of a client.",
    "transaction.max.timeout.ms": "The longest timeout that a transaction may have.",
    "transaction.state.log.num.partitions": "The partitions of __transaction_state.",
    "transaction.state.log.replication.factor": "The replicas of __transaction_state.",
    "transactional.id.expiration.ms": "After how long an idle transactional id is forgotten.",
}
