"""The admin client: its calls, whose requests are in `topics`, `configs`, `groups` ...

Each call is one request to the broker that is responsible.

    async with Admin({"bootstrap.servers": "localhost:9092"}) as admin:
        await admin.create_topic("orders", partitions=3)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from ...client.arguments import (
    INT16,
    INT32,
    INT64,
    settings,
    text,
    topic_name,
    topic_names,
    topic_partition,
    whole,
)
from ...messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from ...messages.list_transactions_request import ListTransactionsRequest
from . import cluster, features, topics, transactions
from .calls import check, only
from .config_calls import ConfigCalls
from .features import Change
from .group_calls import GroupCalls
from .replica_calls import ReplicaCalls
from .security.calls import SecurityCalls
from .values import (
    BrokerVersions,
    ClusterInfo,
    HangingTransaction,
    Offset,
    ProducerInfo,
    QuorumInfo,
    TopicInfo,
    TransactionInfo,
    TransactionListing,
)


class Admin(ConfigCalls, GroupCalls, SecurityCalls, ReplicaCalls):
    """Inspects and changes a cluster. Configured under Kafka's names, `ADMIN_KEYS`.

    Every call raises BrokerError for a broker's error, RequestFailed without a response within
    default.api.timeout.ms, ClientClosed, and InvalidValue or OutOfRange for an argument of a wrong
    type or out of range; then nothing was sent.
    """

    # The cluster.

    async def describe_cluster(self, *, include_fenced: bool = False) -> ClusterInfo:
        """Describe the brokers, the controller and the cluster's id.

        include_fenced: also registered brokers that are fenced, from brokers of 4.0 on.
        """
        if include_fenced:
            return await cluster.describe_with_fenced(self._calls)
        return await cluster.describe(self._calls)

    async def describe_quorum(self) -> QuorumInfo:
        """Describe the quorum of the controllers: its leader, voters and observers."""
        return await cluster.describe_quorum(self._calls)

    async def broker_versions(self, broker_id: int) -> BrokerVersions:
        """Return the versions of APIs and the features that a broker supports."""
        number = whole(broker_id, "broker_id", 0, INT32)
        return await cluster.broker_versions(self._calls, number)

    async def update_features(
        self,
        levels: Mapping[str, int],
        change: Change = "UPGRADE",
        *,
        validate_only: bool = False,
    ) -> None:
        """Finalize features at these levels, 0 disables one; all of them or none.

        change: UPGRADE, SAFE_DOWNGRADE, or UNSAFE_DOWNGRADE, which may lose metadata. Brokers
        before 3.3 have no unsafe downgrade and no validate_only.
        """
        await features.update(
            self._calls, levels, change, self._timeout_ms, validate_only=validate_only
        )

    async def unregister_broker(self, broker_id: int) -> None:
        """Remove the registration of a broker that is stopped for good."""
        number = whole(broker_id, "broker_id", 0, INT32)
        await cluster.unregister_broker(self._calls, number)

    # Topics.

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic; -1 means the broker's default."""
        topic = CreatableTopic(
            name=topic_name(name, "name"),
            num_partitions=whole(partitions, "partitions", -1, INT32),
            replication_factor=whole(replication_factor, "replication_factor", -1, INT16),
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in settings(configs or {}, "configs").items()
            ],
        )
        await topics.create(self._calls, topic, self._timeout_ms, validate_only=validate_only)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and all its records."""
        name = topic_name(name, "name")
        await topics.delete(self._calls, name, self._timeout_ms)

    async def create_partitions(
        self, topic: str, count: int, *, validate_only: bool = False
    ) -> None:
        """Increase the number of partitions of a topic to `count`."""
        name, number = topic_name(topic), whole(count, "count", 1, INT32)
        await topics.create_partitions(
            self._calls, name, number, self._timeout_ms, validate_only=validate_only
        )

    async def list_topics(self) -> list[str]:
        """List the topics of the cluster, internal ones too, sorted."""
        response = await topics.metadata(self._calls, None)
        return sorted(row.name for row in response.topics if row.name is not None)

    async def describe_topics(self, names: Iterable[str] | None) -> dict[str, TopicInfo]:
        """Describe topics; BrokerError for the first unknown one. names: None is all topics."""
        wanted = None if names is None else list(topic_names(names, "names"))
        response = await topics.metadata(self._calls, wanted)
        for row in response.topics if wanted is not None else ():
            check(row.error_code, f"topic {row.name or 'without a name'}")
        infos = {
            row.name: topics.topic_info(row) for row in response.topics if row.name is not None
        }
        for name in wanted or ():
            only([name] if name in infos else [], f"topic {name}")
        return infos

    # Records.

    async def list_offsets(
        self, partitions: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], Offset]:
        """Look up offsets: (topic, partition) -> EARLIEST, LATEST, or a timestamp.

        A timestamp, in milliseconds, finds the first record not older.
        """
        times = {
            topic_partition(where): whole(timestamp, "timestamp", -INT64 - 1, INT64)
            for where, timestamp in partitions.items()
        }
        offsets = await asyncio.gather(
            *(
                topics.find_offset(self._calls, *where, timestamp)
                for where, timestamp in times.items()
            )
        )
        return dict(zip(times, offsets, strict=True))

    async def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records before an offset (-1: all); return the new log start offset."""
        topic, partition = topic_partition((topic, partition))
        offset = whole(before, "before", -1, INT64)
        return await topics.delete_records(self._calls, topic, partition, offset, self._timeout_ms)

    # Transactions.

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """List the transactional ids of all coordinators, sorted by id.

        states: only those in such states, e.g. Ongoing. longer_than_ms: only those whose
        transaction began so long ago, from brokers of 3.8 on. pattern: only ids that match a
        regular expression as a whole, in RE2's syntax, from brokers of 4.1 on.
        """
        request = ListTransactionsRequest(
            state_filters=[text(each, "states") for each in states],
            producer_id_filters=[whole(each, "producer_ids", 0, INT64) for each in producer_ids],
            duration_filter=whole(longer_than_ms, "longer_than_ms", -1, INT64),
            transactional_id_pattern=None if pattern is None else text(pattern, "pattern"),
        )
        return await transactions.list_transactions(self._calls, await self._brokers(), request)

    async def describe_transaction(self, transactional_id: str) -> TransactionInfo:
        """Describe the last transaction of a transactional id."""
        name = text(transactional_id, "transactional_id")
        return await transactions.describe_transaction(self._calls, name)

    async def describe_producers(self, topic: str, partition: int) -> tuple[ProducerInfo, ...]:
        """Describe the idempotent and transactional producers of a partition, by id."""
        where = topic_partition((topic, partition))
        return await transactions.describe_producers(self._calls, where)

    async def find_hanging_transactions(
        self, topics: Iterable[str] | None = None, *, before_ms: int
    ) -> list[HangingTransaction]:
        """Find transactions that no coordinator will end, whose last record is older than a time.

        topics: None is all, internal ones too. before_ms: since 1970, in the time of the records;
        at least `transaction.max.timeout.ms` ago, as younger ones may just begin.
        """
        limit = whole(before_ms, "before_ms", 0, INT64)
        described = await self.describe_topics(topics)
        leaders = [
            (each.leader, (topic.name, each.partition))
            for topic in described.values()
            for each in topic.partitions
            if each.leader >= 0
        ]
        candidates = await transactions.open_transactions(self._calls, leaders, limit)
        return await transactions.hanging(self._calls, await self._brokers(), candidates)

    async def abort_hanging_transaction(self, hanging: HangingTransaction) -> None:
        """Abort a transaction in one partition: consumers with read_committed go on."""
        await transactions.abort(self._calls, hanging)

    async def fence_producer(self, transactional_id: str) -> None:
        """Fence the producer with a transactional id, and abort its open transaction."""
        name = text(transactional_id, "transactional_id")
        await transactions.fence(self._calls, name, self._timeout_ms)
