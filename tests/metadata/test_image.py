"""Records to an image and back: transactions, deltas, versions, and what does not apply."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkawire.controller import InvalidMetadataRecord, MetadataImage, MetadataLoader, snapshot
from kafkawire.log import InternalLog, decode_log_record, encode_log_message
from kafkawire.messages.abort_transaction_record import AbortTransactionRecord
from kafkawire.messages.access_control_entry_record import AccessControlEntryRecord
from kafkawire.messages.begin_transaction_record import BeginTransactionRecord
from kafkawire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafkawire.messages.clear_elr_record import ClearElrRecord
from kafkawire.messages.client_quota_record import ClientQuotaRecord, EntityData
from kafkawire.messages.config_record import ConfigRecord
from kafkawire.messages.delegation_token_record import DelegationTokenRecord
from kafkawire.messages.end_transaction_record import EndTransactionRecord
from kafkawire.messages.feature_level_record import FeatureLevelRecord
from kafkawire.messages.fence_broker_record import FenceBrokerRecord
from kafkawire.messages.no_op_record import NoOpRecord
from kafkawire.messages.partition_change_record import PartitionChangeRecord
from kafkawire.messages.partition_record import PartitionRecord
from kafkawire.messages.producer_ids_record import ProducerIdsRecord
from kafkawire.messages.register_broker_record import RegisterBrokerRecord
from kafkawire.messages.register_controller_record import RegisterControllerRecord
from kafkawire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafkawire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kafkawire.messages.remove_feature_level_record import RemoveFeatureLevelRecord
from kafkawire.messages.remove_topic_record import RemoveTopicRecord
from kafkawire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kafkawire.messages.snapshot_footer_record import SnapshotFooterRecord
from kafkawire.messages.topic_record import TopicRecord
from kafkawire.messages.unfence_broker_record import UnfenceBrokerRecord
from kafkawire.messages.unregister_broker_record import UnregisterBrokerRecord
from kafkawire.messages.unregister_controller_record import UnregisterControllerRecord
from kafkawire.messages.user_scram_credential_record import UserScramCredentialRecord
from kafkawire.messages.zk_migration_state_record import ZkMigrationStateRecord
from kafkawire.metadata.replay import REPLAY
from kafkawire.metadata.versions import NEWEST, OLDEST, versioned
from kafkawire.primitives import Message

from ..controller.invariants import check_indexes

A, B = b"a" * 16, b"b" * 16


def partition(index: int, *replicas: int, **fields: Any) -> PartitionRecord:
    given: dict[str, Any] = {
        "isr": list(replicas),
        "leader": replicas[0],
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return PartitionRecord(
        partition_id=index, topic_id=A, replicas=list(replicas), **(given | fields)
    )


FULL: list[Message] = [
    FeatureLevelRecord(name="metadata.version", feature_level=NEWEST),
    FeatureLevelRecord(name="group.version", feature_level=1),
    RegisterControllerRecord(controller_id=9, incarnation_id=B),
    RegisterBrokerRecord(broker_id=1, broker_epoch=3, incarnation_id=A, rack="r", log_dirs=[A]),
    RegisterBrokerRecord(broker_id=2, broker_epoch=4, incarnation_id=B, cordoned_log_dirs=[]),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=-1),
    UnfenceBrokerRecord(id=2, epoch=4),
    TopicRecord(name="a.b", topic_id=A),
    partition(0, 1, 2, adding_replicas=[2], directories=[A, B]),
    partition(1, 2, 1, eligible_leader_replicas=[1], isr=[2], last_known_elr=[1]),
    PartitionChangeRecord(partition_id=0, topic_id=A, isr=[1], leader=1, leader_recovery_state=1),
    ConfigRecord(resource_type=2, resource_name="a.b", name="retention.ms", value="1"),
    ConfigRecord(resource_type=4, resource_name="", name="x", value="1"),
    ConfigRecord(resource_type=4, resource_name="", name="x", value=None),
    ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name=None)], key="k", value=0.5, remove=False
    ),
    ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=4000),
    UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", iterations=4096),
    AccessControlEntryRecord(id=A, resource_type=2, resource_name="t", principal="User:u"),
    DelegationTokenRecord(owner="User:u", token_id="t", renewers=["User:v"]),
    ZkMigrationStateRecord(zk_migration_state=0),
    NoOpRecord(),
]


def loaded(records: list[Message]) -> MetadataLoader:
    loader = MetadataLoader()
    loader.apply(records, 0)
    return loader


def test_an_image_survives_a_snapshot_on_the_wire() -> None:
    image = loaded(FULL).image
    loader = MetadataLoader()
    records = []
    for message, version in snapshot(image):
        value = encode_log_message(message, version)
        decoded = decode_log_record(InternalLog.METADATA, None, value)
        assert decoded.value is not None
        assert decoded.value.message is not None, decoded.value.error
        records.append(decoded.value.message)
    loader.load_snapshot(records, image.offset)
    assert loader.image == image
    assert loader.image.offset == len(FULL) - 1
    check_indexes(loader.image)
    assert isinstance(records[0], FeatureLevelRecord)
    assert records[0].name == "metadata.version"


def test_every_record_of_the_metadata_log_is_known() -> None:
    from kafkawire import REGISTRY
    from kafkawire.metadata.loader import TRANSACTIONS
    from kafkawire.protocol.log_types import FRAMED

    names = set(FRAMED[InternalLog.METADATA].values()) - {"AccessControlRecord"}  # never written
    assert {type.__name__ for type in (*REPLAY, *TRANSACTIONS)} == names
    assert all(REGISTRY.get(name) for name in names)


def test_parts_are_undone_by_their_opposites() -> None:
    image = loaded(
        [
            *FULL,
            RemoveTopicRecord(topic_id=A),
            UnregisterBrokerRecord(broker_id=1, broker_epoch=3),
            FenceBrokerRecord(id=2, epoch=4),
            UnregisterBrokerRecord(broker_id=2, broker_epoch=4),
            UnregisterControllerRecord(controller_id=9),
            ClientQuotaRecord(
                entity=[EntityData(entity_type="user", entity_name=None)], key="k", remove=True
            ),
            RemoveUserScramCredentialRecord(name="u", mechanism=1),
            RemoveAccessControlEntryRecord(id=A),
            RemoveDelegationTokenRecord(token_id="t"),
            RemoveFeatureLevelRecord(name="group.version"),
            FeatureLevelRecord(name="metadata.version", feature_level=0),
        ]
    ).image
    empty = MetadataImage()
    empty.next_producer_id = 4000
    assert image == empty
    assert not image.topic_ids
    assert not image.colliding
    check_indexes(image)


def test_a_delta_names_what_changed() -> None:
    loader = loaded(FULL)
    delta = loader.apply(
        [
            PartitionChangeRecord(partition_id=1, topic_id=A, leader=1),
            TopicRecord(name="c", topic_id=B),
            RemoveTopicRecord(topic_id=B),
            ConfigRecord(resource_type=2, resource_name="a.b", name="retention.ms", value=None),
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=4, fenced=1),
        ],
        100,
    )
    assert list(delta.partitions) == [(A, 1)]
    assert not delta.topics
    assert delta.deleted_topics == {B: "c"}
    assert [tuple(each) for each in delta.configs] == [(2, "a.b")]
    assert list(delta.brokers) == [2]
    assert delta.offset == loader.image.offset == 104


def test_a_snapshot_tells_observers_what_is_gone() -> None:
    loader = loaded(FULL)
    delta = loader.load_snapshot([TopicRecord(name="c", topic_id=B)], 50)
    assert delta.deleted_topics == {A: "a.b"}
    assert list(delta.topics) == [B]
    assert list(delta.brokers) == [1, 2]
    assert delta.configs


def test_a_transaction_is_applied_when_it_ends() -> None:
    loader = MetadataLoader()
    loader.apply([BeginTransactionRecord(name="t"), TopicRecord(name="a", topic_id=A)], 0)
    assert loader.in_transaction
    assert not loader.image.topics
    copied = loader.copy()
    loader.apply([EndTransactionRecord()], 2)
    assert list(loader.image.topics) == [A]
    assert loader.image.offset == 2
    copied.apply([AbortTransactionRecord(), TopicRecord(name="a", topic_id=B)], 2)
    assert list(copied.image.topics) == [B]


def test_a_transaction_changes_what_its_records_name() -> None:
    """Also with what the same call applied before; a snapshot in between forgets it."""
    loader = MetadataLoader()
    records = [
        TopicRecord(name="a", topic_id=A),
        BeginTransactionRecord(name="t"),
        RemoveTopicRecord(topic_id=A),
        TopicRecord(name="b", topic_id=B),
        EndTransactionRecord(),
    ]
    delta = loader.apply(records, 0)
    assert list(delta.topics) == [B]
    assert delta.deleted_topics == {A: "a"}
    assert delta.offset == loader.image.offset == 4
    loader.apply([BeginTransactionRecord(name="t"), RemoveTopicRecord(topic_id=B)], 5)
    assert list(loader.image.topics) == [B]
    copied = loader.copy()
    loader.load_snapshot([TopicRecord(name="c", topic_id=A)], 7)
    assert list(loader.image.topics) == [A]
    assert not loader.in_transaction
    assert copied.apply([EndTransactionRecord()], 7).deleted_topics == {B: "b"}
    assert not copied.image.topics


def test_clearing_the_elr_bumps_no_epoch() -> None:
    loader = loaded(FULL)
    before = loader.image.partition((A, 1))
    assert before is not None
    loader.apply([ClearElrRecord(topic_name="")], 100)
    assert loader.image.partition((A, 1)) == before._replace(elr=(), last_known_elr=())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (PartitionChangeRecord(partition_id=7, topic_id=A), "unknown partition a.b-7"),
        (PartitionChangeRecord(partition_id=0, topic_id=B), f"unknown topic id {B.hex()}"),
        (PartitionChangeRecord(partition_id=0, topic_id=A, replicas=[]), "would have no replicas"),
        (PartitionRecord(partition_id=2, topic_id=A), "a.b-2 has no replicas"),
        (TopicRecord(name="a.b", topic_id=B), "duplicate topic a.b"),
        (TopicRecord(name="c", topic_id=A), "duplicate topic id"),
        (RemoveTopicRecord(topic_id=B), "unknown topic id"),
        (ClearElrRecord(topic_name="c"), "unknown topic c"),
        (FenceBrokerRecord(id=7, epoch=1), "unknown broker 7"),
        (UnregisterBrokerRecord(broker_id=1, broker_epoch=9), "broker 1 has epoch 3, not 9"),
        (
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=5),
            "5 is not a valid value of fenced",
        ),
        (
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, in_controlled_shutdown=2),
            "2 is not a valid value of inControlledShutdown",
        ),
        (ProducerIdsRecord(next_producer_id=1), "next producer id 1 is below 4000"),
        (RemoveAccessControlEntryRecord(id=B), "unknown ACL"),
        (UnregisterControllerRecord(controller_id=3), "unknown controller 3"),
        (EndTransactionRecord(), "no transaction is open"),
        (SnapshotFooterRecord(), "not a record of metadata"),
    ],
)
def test_what_does_not_apply_is_named_and_changes_nothing(record: Message, reason: str) -> None:
    loader = loaded(FULL)
    before = loader.image.copy()
    with pytest.raises(InvalidMetadataRecord, match=reason) as caught:
        loader.apply([record], 100)
    assert caught.value.offset == 100
    assert caught.value.record == type(record).__name__
    assert str(caught.value).startswith(f"{type(record).__name__} at offset 100: ")
    assert loader.image == before
    assert loader.image.offset == before.offset
    check_indexes(loader.image)


def test_other_errors_of_a_log() -> None:
    loader = loaded(FULL)
    with pytest.raises(InvalidMetadataRecord, match="offset 20 was applied before"):
        loader.apply([NoOpRecord()], 20)
    loader.apply([BeginTransactionRecord()], 30)
    with pytest.raises(InvalidMetadataRecord, match="a transaction is open already"):
        loader.apply([BeginTransactionRecord()], 31)
    with pytest.raises(InvalidMetadataRecord, match="a snapshot has no transactions"):
        loader.load_snapshot([BeginTransactionRecord()], 5)


@pytest.mark.parametrize(
    ("value", "name", "reason"),
    [
        (None, "", "null is not a valid record"),
        (b"\x01\x63\x00", "", "no record of this log has type 99"),
        (b"\x01\x02\x09", "TopicRecord", "version"),
        (b"\x01\x02\x00\x05ab", "TopicRecord", "name"),
    ],
)
def test_bytes_that_are_not_decoded_are_named(value: bytes | None, name: str, reason: str) -> None:
    decoded = decode_log_record(InternalLog.METADATA, None, value)
    with pytest.raises(InvalidMetadataRecord, match=reason) as caught:
        MetadataLoader().apply_decoded([(12, decoded)])
    assert caught.value.record == name
    assert caught.value.offset == 12
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_records_are_written_in_the_versions_of_the_cluster() -> None:
    """Each encodes, with all its fields that the metadata.version knows."""
    for level, expected in ((OLDEST, [1, 0, 0]), (17, [3, 1, 1]), (23, [3, 2, 2]), (30, [4, 2, 2])):
        records = [
            RegisterBrokerRecord(broker_id=1),
            partition(0, 1),
            PartitionChangeRecord(partition_id=0, topic_id=A),
        ]
        made = [versioned(each, level) for each in records]
        assert [each.version for each in made] == expected
        for message, version in made:
            encode_log_message(message, version)
    change = BrokerRegistrationChangeRecord
    for record, version in (
        (change(fenced=1), 0),
        (change(in_controlled_shutdown=1), 1),
        (change(log_dirs=[A]), 2),
        (change(cordoned_log_dirs=[]), 3),
    ):
        assert versioned(record, NEWEST).version == version
        encode_log_message(record, version)


def test_a_snapshot_names_the_partitions_of_topics_that_it_does_not_have() -> None:
    """Before those of a new topic with the name: their logs are deleted first."""
    loader = MetadataLoader()
    old = [PartitionRecord(partition_id=at, topic_id=B, replicas=[1]) for at in (0, 1)]
    loader.apply([TopicRecord(name="b", topic_id=B), *old], 0)
    new = PartitionRecord(partition_id=0, topic_id=A, replicas=[1])
    delta = loader.load_snapshot([TopicRecord(name="b", topic_id=A), new], 9)
    assert delta.deleted_topics == {B: "b"}
    assert list(delta.partitions) == [(B, 0), (B, 1), (A, 0)]
