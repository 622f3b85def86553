"""What a leader knows of a follower, from its fetches.

A follower has caught up when it fetched what was the log end at its previous fetch; so a
follower that is always a little behind is not out of sync (KAFKA-1546).
"""

from __future__ import annotations

from dataclasses import dataclass

from .log.replica_log import UNKNOWN_OFFSET

NEVER = float("-inf")


@dataclass(slots=True)
class Replica:
    """A follower. broker_epoch: that of its last fetch, -1 if it said none (KIP-903)."""

    broker_id: int
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int | None = None
    last_caught_up: float = NEVER
    last_fetch: float = NEVER
    leader_end_at_last_fetch: int = UNKNOWN_OFFSET
    last_sent_high_watermark: int = UNKNOWN_OFFSET

    def fetched(self, offset: int, start: int, leader_end: int, epoch: int, now: float) -> None:
        """Note a fetch at `offset`, which says that everything before it is replicated."""
        if offset >= leader_end:
            self.last_caught_up = max(self.last_caught_up, now)
        elif offset >= self.leader_end_at_last_fetch:
            self.last_caught_up = max(self.last_caught_up, self.last_fetch)
        self.log_end_offset, self.log_start_offset = offset, start
        self.broker_epoch = epoch
        self.last_fetch = now
        self.leader_end_at_last_fetch = max(self.leader_end_at_last_fetch, leader_end)

    def reset(self, leader_end: int, in_sync: bool, is_new_leader: bool, now: float) -> None:
        """Start a leader epoch; in-sync followers have the whole lag time to fetch."""
        since = now if in_sync else NEVER
        if is_new_leader:
            self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
            self.broker_epoch = None
            self.leader_end_at_last_fetch = UNKNOWN_OFFSET
            self.last_fetch = NEVER
        else:
            self.leader_end_at_last_fetch = leader_end
            self.last_fetch = since
        self.last_caught_up = since
        self.last_sent_high_watermark = UNKNOWN_OFFSET

    def is_caught_up(self, leader_end: int, lag_time_max: float, now: float) -> bool:
        """Return whether the follower is at the log end, or was within the lag time."""
        return self.log_end_offset == leader_end or now - self.last_caught_up <= lag_time_max
