"""BrokerHeartbeat: fences, unfences and shuts down brokers in order.

The state changes only as `broker_states.NEXT` says; a fenced broker leads nothing and is in no
ISR, except as its last member where ELR is not enabled. With ZooKeeper, each heartbeat that wants
to shut down is a ControlledShutdown: the broker goes on leading what no other replica can lead,
until a heartbeat that also wants to be fenced.
"""

from __future__ import annotations

from ...messages.broker_heartbeat_request import BrokerHeartbeatRequest
from ...messages.broker_heartbeat_response import BrokerHeartbeatResponse
from ...messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from ...metadata import NO_LEADER, BrokerRegistration, TopicIdPartition
from ...metadata.registrations import FENCE, UNFENCE
from ...metadata.versions import CORDONED, DIRECTORIES
from ...protocol import ErrorCode
from ..broker_states import RECORDED, BrokerState, Trigger, next_state, state_of
from ..partition_change import (
    Election,
    PartitionTarget,
    change_partition,
    leave_isr,
    may_lead,
)
from ..state import ControllerState

S = BrokerState


def note_contact(state: ControllerState, body: BrokerHeartbeatRequest, now: float) -> None:
    """Renew a session before its heartbeat's turn: while a large request is decided on."""
    if state.broker(body.broker_id, body.broker_epoch) is not None:
        state.sessions.touch(body.broker_id, now, body.current_metadata_offset)


def heartbeat(
    state: ControllerState, body: BrokerHeartbeatRequest, _version: int, now: float
) -> BrokerHeartbeatResponse:
    """Renew a session and change the state of the broker."""
    broker = state.broker(body.broker_id, body.broker_epoch)
    if broker is None:
        return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    before = state_of(broker)
    if before is S.CONTROLLED_SHUTDOWN:  # not next_offset: brokers do not count control records
        state.sessions.start_shutdown(body.broker_id, state.image.offset)
    after = next_state(before, _trigger(state, body, before))
    if after is not before:
        _enter(state, broker, after)
    elif before is S.CONTROLLED_SHUTDOWN and body.want_shut_down and state.config.zookeeper:
        _move_leaders(state, body.broker_id)
    state.sessions.touch(body.broker_id, now, body.current_metadata_offset)
    _note_directories(state, state.image.brokers[body.broker_id], body)
    return BrokerHeartbeatResponse(
        is_caught_up=body.current_metadata_offset >= state.image.registered_at[body.broker_id],
        is_fenced=RECORDED.get(after, after) is S.FENCED,
        should_shut_down=after is S.SHUTDOWN_NOW,
    )


def _trigger(
    state: ControllerState, body: BrokerHeartbeatRequest, before: BrokerState
) -> Trigger | None:
    """Return what a heartbeat means for a broker in a state."""
    leads = state.image.indexes.leaders.has(body.broker_id)
    zookeeper = state.config.zookeeper
    if before is S.CONTROLLED_SHUTDOWN:
        active = (each for each in state.image.brokers if state.image.is_active(each))
        done = body.want_shut_down and body.want_fence if zookeeper else not leads
        stop = done and state.sessions.may_stop(body.broker_id, active)
        return Trigger.LEADERS_MOVED if stop else None
    if body.want_shut_down:
        moving = (leads or zookeeper) and not body.want_fence
        return Trigger.WANTS_SHUTDOWN_LEADING if moving else Trigger.WANTS_SHUTDOWN
    if body.want_fence:
        return Trigger.WANTS_FENCE
    read = body.current_metadata_offset >= state.image.registered_at[body.broker_id]
    return Trigger.CAUGHT_UP if read else None


def _enter(state: ControllerState, broker: BrokerRegistration, after: BrokerState) -> None:
    if after is S.UNFENCED:
        _unfence(state, broker)
    elif after is S.CONTROLLED_SHUTDOWN:
        _start_shutdown(state, broker)
    elif not broker.fenced:
        fence(state, broker.broker_id)


def fence(state: ControllerState, broker_id: int) -> None:
    """Fence a broker: others lead its partitions."""
    leave_isr(state, state.image.indexes.isr.of(broker_id), broker_id)
    state.write(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=state.image.brokers[broker_id].epoch, fenced=FENCE
        )
    )


def _unfence(state: ControllerState, broker: BrokerRegistration) -> None:
    """Unfence a broker; it may lead partitions that nobody led."""
    state.write(
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE
        )
    )
    for at in state.image.indexes.leaders.of(NO_LEADER):
        unclean = state.unclean_enabled(at[0])
        target = PartitionTarget(election=Election.UNCLEAN if unclean else Election.ONLINE)
        change_partition(state, at, target)


def _start_shutdown(state: ControllerState, broker: BrokerRegistration) -> None:
    state.write(
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
    )
    _move_leaders(state, broker.broker_id)
    state.sessions.start_shutdown(broker.broker_id, state.image.offset)


def _move_leaders(state: ControllerState, broker_id: int) -> None:
    """Take a stopping broker out of ISRs; with ZooKeeper, where another replica can lead."""
    partitions = state.image.indexes.isr.of(broker_id)
    if state.config.zookeeper:
        partitions = [at for at in partitions if _has_others(state, at, broker_id)]
    leave_isr(state, partitions, broker_id)


def _has_others(state: ControllerState, at: TopicIdPartition, broker_id: int) -> bool:
    partition = state.image.partition(at)
    assert partition is not None
    others = (each for each in partition.isr if each != broker_id)
    return any(may_lead(state, partition, each) for each in others)


def _note_directories(
    state: ControllerState, broker: BrokerRegistration, body: BrokerHeartbeatRequest
) -> None:
    """Take replicas in failed directories out of their ISRs (KIP-858), note cordoned ones."""
    if state.metadata_version >= DIRECTORIES:
        offline = [each for each in body.offline_log_dirs if each in broker.directories]
        for directory in offline:
            partitions = state.image.indexes.directories.of(directory)
            leave_isr(state, partitions, broker.broker_id)
        online = [each for each in broker.directories if each not in offline]
        if offline and online:
            state.write(
                BrokerRegistrationChangeRecord(
                    broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=online
                )
            )
    cordoned = body.cordoned_log_dirs
    cordoned_before = None if broker.cordoned is None else set(broker.cordoned)
    if (
        state.metadata_version >= CORDONED
        and cordoned is not None
        and set(cordoned) != cordoned_before
    ):
        state.write(
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned
            )
        )
