"""The admin client whose calls wait."""

from __future__ import annotations

from ..net.admin import admin as asynchronous
from .client import BlockingClient, in_loop, waiting


class Admin(BlockingClient[asynchronous.Admin]):
    """Looks up and changes topics, groups, transactions ...; see `kafkawire.net.admin.Admin`."""

    kind = asynchronous.Admin

    metrics = in_loop(asynchronous.Admin.metrics)

    describe_cluster = waiting(asynchronous.Admin.describe_cluster)
    describe_quorum = waiting(asynchronous.Admin.describe_quorum)
    broker_versions = waiting(asynchronous.Admin.broker_versions)
    describe_log_dirs = waiting(asynchronous.Admin.describe_log_dirs)
    create_acls = waiting(asynchronous.Admin.create_acls)
    describe_acls = waiting(asynchronous.Admin.describe_acls)
    delete_acls = waiting(asynchronous.Admin.delete_acls)
    create_topic = waiting(asynchronous.Admin.create_topic)
    delete_topic = waiting(asynchronous.Admin.delete_topic)
    create_partitions = waiting(asynchronous.Admin.create_partitions)
    list_topics = waiting(asynchronous.Admin.list_topics)
    describe_topics = waiting(asynchronous.Admin.describe_topics)
    list_offsets = waiting(asynchronous.Admin.list_offsets)
    delete_records = waiting(asynchronous.Admin.delete_records)
    describe_topic_config = waiting(asynchronous.Admin.describe_topic_config)
    describe_topic_configs = waiting(asynchronous.Admin.describe_topic_configs)
    describe_broker_config = waiting(asynchronous.Admin.describe_broker_config)
    alter_topic_config = waiting(asynchronous.Admin.alter_topic_config)
    describe_group_config = waiting(asynchronous.Admin.describe_group_config)
    alter_group_config = waiting(asynchronous.Admin.alter_group_config)
    list_groups = waiting(asynchronous.Admin.list_groups)
    describe_group = waiting(asynchronous.Admin.describe_group)
    describe_consumer_groups = waiting(asynchronous.Admin.describe_consumer_groups)
    describe_streams_groups = waiting(asynchronous.Admin.describe_streams_groups)
    delete_group = waiting(asynchronous.Admin.delete_group)
    group_offsets = waiting(asynchronous.Admin.group_offsets)
    alter_group_offsets = waiting(asynchronous.Admin.alter_group_offsets)
    delete_group_offsets = waiting(asynchronous.Admin.delete_group_offsets)
    list_transactions = waiting(asynchronous.Admin.list_transactions)
    describe_transaction = waiting(asynchronous.Admin.describe_transaction)
    describe_producers = waiting(asynchronous.Admin.describe_producers)
    find_hanging_transactions = waiting(asynchronous.Admin.find_hanging_transactions)
    abort_hanging_transaction = waiting(asynchronous.Admin.abort_hanging_transaction)
    list_config_resources = waiting(asynchronous.Admin.list_config_resources)
    describe_configs = waiting(asynchronous.Admin.describe_configs)
    alter_configs = waiting(asynchronous.Admin.alter_configs)
    update_features = waiting(asynchronous.Admin.update_features)
    unregister_broker = waiting(asynchronous.Admin.unregister_broker)
    describe_client_quotas = waiting(asynchronous.Admin.describe_client_quotas)
    alter_client_quotas = waiting(asynchronous.Admin.alter_client_quotas)
    describe_user_scram_credentials = waiting(asynchronous.Admin.describe_user_scram_credentials)
    upsert_user_scram_credential = waiting(asynchronous.Admin.upsert_user_scram_credential)
    delete_user_scram_credential = waiting(asynchronous.Admin.delete_user_scram_credential)
    create_delegation_token = waiting(asynchronous.Admin.create_delegation_token)
    renew_delegation_token = waiting(asynchronous.Admin.renew_delegation_token)
    expire_delegation_token = waiting(asynchronous.Admin.expire_delegation_token)
    describe_delegation_tokens = waiting(asynchronous.Admin.describe_delegation_tokens)
    describe_replicas = waiting(asynchronous.Admin.describe_replicas)
    alter_replica_log_dirs = waiting(asynchronous.Admin.alter_replica_log_dirs)
    alter_partition_reassignments = waiting(asynchronous.Admin.alter_partition_reassignments)
    list_partition_reassignments = waiting(asynchronous.Admin.list_partition_reassignments)
    elect_leaders = waiting(asynchronous.Admin.elect_leaders)
    remove_members_from_group = waiting(asynchronous.Admin.remove_members_from_group)
    describe_share_groups = waiting(asynchronous.Admin.describe_share_groups)
    share_group_offsets = waiting(asynchronous.Admin.share_group_offsets)
    alter_share_group_offsets = waiting(asynchronous.Admin.alter_share_group_offsets)
    delete_share_group_offsets = waiting(asynchronous.Admin.delete_share_group_offsets)
    fence_producer = waiting(asynchronous.Admin.fence_producer)
