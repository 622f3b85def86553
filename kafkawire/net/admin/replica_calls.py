"""The calls of an admin client about replicas: directories, reassignments, leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...client.arguments import INT32, text, topic_partition, topic_partitions, whole
from . import cluster, log_dirs, reassignments
from .session import AdminSession
from .values import LogDirInfo, PartitionReassignment, ReplicaInfo


class ReplicaCalls(AdminSession):
    """Describes and moves replicas."""

    async def describe_log_dirs(self, broker_id: int) -> tuple[LogDirInfo, ...]:
        """Describe the log directories of a broker, by path."""
        number = whole(broker_id, "broker_id", 0, INT32)
        return await cluster.describe_log_dirs(self._calls, number)

    async def describe_replicas(self, broker_id: int) -> list[ReplicaInfo]:
        """Describe the replicas in the log directories of a broker that are online, sorted."""
        number = whole(broker_id, "broker_id", 0, INT32)
        return await log_dirs.describe_replicas(self._calls, number)

    async def alter_replica_log_dirs(
        self, broker_id: int, paths: Mapping[tuple[str, int], str]
    ) -> None:
        """Move replicas of a broker to other log directories of it: (topic, partition) -> path.

        A replica that the broker does not have yet will be in that directory; the BrokerError is
        REPLICA_NOT_AVAILABLE then.
        """
        number = whole(broker_id, "broker_id", 0, INT32)
        checked = {
            topic_partition(where): text(path, "paths value") for where, path in paths.items()
        }
        await log_dirs.alter(self._calls, number, checked)

    async def alter_partition_reassignments(
        self,
        replicas: Mapping[tuple[str, int], Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Move partitions to other brokers: (topic, partition) -> ids, the preferred leader first.

        None cancels the reassignment of a partition. BrokerError for the first that is refused;
        the others go on. allow_replication_factor_change=False needs brokers of 4.1 on.
        """
        checked = {
            topic_partition(where): (
                None if ids is None else [whole(one, "replicas value", 0, INT32) for one in ids]
            )
            for where, ids in replicas.items()
        }
        await reassignments.alter(
            self._calls,
            checked,
            self._timeout_ms,
            allow_factor_change=allow_replication_factor_change,
        )

    async def list_partition_reassignments(
        self, partitions: Iterable[tuple[str, int]] | None = None
    ) -> dict[tuple[str, int], PartitionReassignment]:
        """Return the reassignments in progress, by (topic, partition); partitions: None is all."""
        wanted = None if partitions is None else list(topic_partitions(partitions))
        return await reassignments.list_reassignments(self._calls, wanted, self._timeout_ms)

    async def elect_leaders(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, unclean: bool = False
    ) -> list[tuple[str, int]]:
        """Elect the preferred replicas as leaders; return the partitions with a new one, sorted.

        partitions: None is all. unclean: for partitions without a leader, a replica that may lack
        records, from brokers of 2.4 on. BrokerError for the first that has no such replica.
        """
        wanted = None if partitions is None else list(topic_partitions(partitions))
        return await reassignments.elect_leaders(
            self._calls, wanted, self._timeout_ms, unclean=unclean
        )
