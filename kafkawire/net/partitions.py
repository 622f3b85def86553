"""Topics and partitions as tests see them: new ones, their state, and why one has no leader."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class PartitionState(NamedTuple):
    """Who leads a partition, -1 for nobody, its in-sync replicas, and all of them."""

    leader: int
    isr: Sequence[int]
    replicas: Sequence[int]

    def can_be_led(self, nodes: Collection[int]) -> bool:
        """Return whether any replica is on a broker that runs."""
        return any(each in nodes for each in self.replicas)

    def unavailable(self, name: str, nodes: Collection[int]) -> str:
        """Describe why a partition cannot be read. nodes: the brokers that run."""
        if self.leader in nodes:
            return f"{name} has a leader, broker {self.leader}, without a log that can be read"
        reasons = [f"replicas {listed(self.replicas)}"]
        if sorted(self.isr) != sorted(self.replicas):
            reasons.append(f"in-sync replicas {listed(self.isr)}")
        stopped = [each for each in self.replicas if each not in nodes]
        if stopped:
            verb = "broker {} does not run" if len(stopped) == 1 else "brokers {} do not run"
            reasons.append(verb.format(listed(stopped)))
        return f"{name} has no leader ({'; '.join(reasons)})"


class StoredBatches(NamedTuple):
    """The batches of a log. start: the log start offset, which may be inside the first batch."""

    start: int
    data: bytes


class NewTopic(NamedTuple):
    """A topic to create. factor: how many replicas; None: `default.replication.factor`."""

    name: str
    partitions: int
    factor: int | None
    configs: Mapping[str, str]


def listed(numbers: Collection[int]) -> str:
    """Write numbers as `1, 2`; `none` for none."""
    return ", ".join(map(str, sorted(numbers))) or "none"
