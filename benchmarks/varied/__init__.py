"""Makes captures in which no two messages are alike: `python -m benchmarks.varied OUT MEGABYTES`.

The same seed gives the same bytes. Contents, sizes and versions vary as in the traffic of many
teams: topics and groups with their own names, JSON records of 20 bytes to 8 KiB in every codec,
clients of three generations whose versions tshark 4.0 decodes.

    producers       ApiVersions, Metadata, [InitProducerId], Produce, sometimes several in flight
    members         FindCoordinator, JoinGroup, SyncGroup, Heartbeat, OffsetCommit, LeaveGroup
    their fetchers  ListOffsets, Fetch with sessions, on connections of their own
    administrators  ListGroups, DescribeGroups, Metadata, DescribeConfigs, CreateTopics

    network   simulated time, TCP segments, loss and reordering, pcap
    cluster   topics, records, names, connections
    clients   the programs above
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from .clients import Group, administrator, member, producer
from .cluster import Cluster, Scale
from .network import Damage, Simulation


def capture(
    size: int, seed: int = 1, damage: Damage | None = None, scale: Scale | None = None
) -> Iterator[bytes]:
    """Make a pcap of at least `size` bytes, piece by piece."""
    rng = random.Random(seed)
    simulation = Simulation(rng, damage or Damage())
    chosen = scale or Scale()
    cluster = Cluster(simulation, chosen)
    groups = [Group(cluster) for _ in range(chosen.groups)]
    for group in groups:
        for _ in range(rng.choice((1, 2, 2, 3, 5))):
            simulation.start(member(cluster, group), rng.expovariate(0.1))
    for _ in range(chosen.producers):
        simulation.start(producer(cluster), rng.expovariate(0.1))
    for _ in range(chosen.administrators):
        simulation.start(administrator(cluster, groups), rng.expovariate(0.1))
    return simulation.run(size)
