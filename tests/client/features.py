"""The table of features in docs/client.md, beside other clients.

python -m tests.client.features        prints the table
python -m tests.client.features --write  puts it into the page

A feature that our clients have names tests of ours; one that they do not have names none.
What other clients have is as read in their code and documentation, and as requests that they sent
to our broker, at the versions in `CLIENTS`.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from tests.conftest import ROOT

PAGE: Final = ROOT / "docs" / "client.md"
YES: Final = "yes"
NO: Final = "no"
CLIENTS: Final = (
    "aiokafka 0.14.0",
    "confluent-kafka 2.16.1 (librdkafka 2.16.0)",
    "Java (kafka-clients 4.4.0)",
    "kafkawire",
)
"""The columns, with the versions of which their cells are true."""
BEGIN: Final = "<!-- features: python -m tests.client.features --write -->\n"
END: Final = "<!-- end of features -->\n"


class Feature(NamedTuple):
    """A row: what each client has, `yes`, `no`, or what of it.

    tests: node ids of our tests, relative to tests/; empty if ours is `no`.
    """

    aiokafka: str
    confluent: str
    java: str
    ours: str
    tests: tuple[str, ...] = ()


PRODUCER: Final = "client/producer/test_producer.py"
TRANSACTIONS: Final = "client/producer/test_transactions.py"
OPEN: Final = "net/test_transactions.py"
CLASSIC: Final = "client/consumer/test_scenarios.py"
CONSUMER_GROUPS: Final = "client/consumer/test_consumer_groups.py"
KAFKA_GROUPS: Final = "client/consumer/test_real_consumer_groups.py"
SHARE: Final = "client/share_consumer/test_acknowledging.py"
KAFKA_SHARE: Final = "client/real/test_share_consumer.py"
TLS: Final = "client/net/test_tls.py"

FEATURES: Final[dict[str, Feature]] = {
    "idempotent producer (KIP-98)": Feature(
        "on request",
        "on request",
        "by default",
        "by default",
        (
            "client/test_config.py::test_idempotence_is_on_unless_something_rules_it_out",
            "client/test_client_meets_broker_producing.py::"
            "test_nothing_acknowledged_is_lost_doubled_or_out_of_order",
        ),
    ),
    "transactions, version 1 (KIP-98)": Feature(
        YES,
        YES,
        YES,
        YES,
        (
            f"{TRANSACTIONS}::test_version_1_adds_each_partition_and_group_once_and_first",
            f"{TRANSACTIONS}::test_what_is_committed_is_there_and_what_is_aborted_is_not",
            "client/real/test_transactions.py::test_librdkafka_reads_what_is_committed_at_kafka",
        ),
    ),
    "transactions, version 2 (KIP-890)": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            f"{TRANSACTIONS}::test_version_2_needs_no_request_to_add_partitions_or_groups",
            f"{TRANSACTIONS}::test_version_2_has_an_epoch_for_each_transaction",
        ),
    ),
    "offsets in a transaction": Feature(
        YES,
        YES,
        YES,
        YES,
        (f"{OPEN}::test_read_process_write_is_done_once",),
    ),
    "group metadata with them: members that lost their partitions are fenced (KIP-447)": Feature(
        NO,
        YES,
        YES,
        YES,
        (
            f"{OPEN}::test_a_member_of_a_past_generation_is_refused",
            f"{TRANSACTIONS}::test_a_member_that_lost_its_partitions_commits_nothing",
        ),
    ),
    "`isolation.level=read_committed`": Feature(
        YES,
        YES,
        YES,
        YES,
        ("client/consumer/test_real.py::test_read_committed",),
    ),
    "sticky partitioner (KIP-480)": Feature(
        NO,
        YES,
        YES,
        YES,
        ("client/producer/test_partitioning.py::test_records_stick_to_a_partition_for_a_batch",),
    ),
    "classic groups, eager assignors": Feature(
        "range, roundrobin, sticky",
        "range, roundrobin",
        "range, roundrobin, sticky",
        "range, roundrobin, sticky",
        (
            f"{CLASSIC}::test_two_members_share_and_the_second_leaves_again",
            "client/consumer/test_configuration.py::test_assignors_by_name_and_custom",
        ),
    ),
    "classic groups, cooperative (KIP-429)": Feature(
        NO,
        YES,
        YES,
        YES,
        (f"{CLASSIC}::test_a_cooperative_rebalance_revokes_only_moving_partitions",),
    ),
    "own assignors": Feature(
        YES,
        NO,
        YES,
        YES,
        ("client/consumer/test_own_assignor.py::test_custom_assignor_assigns_partitions",),
    ),
    "static members (KIP-345)": Feature(
        YES,
        YES,
        YES,
        YES,
        (
            f"{CLASSIC}::test_a_static_member_comes_back_without_a_rebalance",
            f"{CONSUMER_GROUPS}::test_a_static_member_comes_back_to_what_it_had",
        ),
    ),
    "`group.protocol=consumer` (KIP-848)": Feature(
        NO,
        YES,
        YES,
        YES,
        (
            f"{CONSUMER_GROUPS}::test_only_partitions_that_move_are_revoked",
            f"{KAFKA_GROUPS}::test_beside_librdkafka_in_one_group",
        ),
    ),
    "topics by a pattern that the client matches": Feature(
        YES,
        "classic groups",
        YES,
        YES,
        ("client/consumer/test_real.py::test_a_pattern_finds_topics_made_later",),
    ),
    "topics by a pattern that brokers match (RE2)": Feature(
        NO,
        "groups of KIP-848",
        "groups of KIP-848",
        "groups of KIP-848",
        (
            f"{CONSUMER_GROUPS}::test_a_pattern_of_the_brokers_and_one_of_python",
            f"{KAFKA_GROUPS}::test_a_pattern_that_the_broker_matches",
        ),
    ),
    "share groups (KIP-932): accept, release, reject": Feature(
        NO,
        "preview",
        YES,
        YES,
        (
            f"{SHARE}::test_implicit_mode_accepts_what_was_delivered_before_the_poll",
            f"{KAFKA_SHARE}::test_what_is_not_accepted_is_delivered_again_or_rejected",
        ),
    ),
    "share groups: explicit mode": Feature(
        NO,
        "preview",
        YES,
        YES,
        (f"{SHARE}::test_a_poll_with_unacknowledged_records_is_an_error_and_sends_nothing",),
    ),
    "share groups: renewal of a lock (KIP-1222)": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            f"{SHARE}::test_a_renewed_record_is_returned_by_the_next_poll",
            f"{KAFKA_SHARE}::test_a_renewed_record_is_returned_again",
        ),
    ),
    "share groups: `share.acquire.mode` (KIP-1206)": Feature(
        NO,
        NO,
        YES,
        YES,
        ("client/share_consumer/test_configuration.py::test_modes",),
    ),
    "Streams groups (KIP-1071)": Feature(NO, NO, "Kafka Streams", NO),
    "fetching from the closest replica (KIP-392)": Feature(
        YES,
        YES,
        YES,
        YES,
        ("client/consumer/test_fetcher.py::test_the_preferred_read_replica_is_used_until_it_lags",),
    ),
    "racks in assignments of the client (KIP-881)": Feature(NO, YES, YES, NO),
    "incremental fetch sessions (KIP-227)": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            f"{CLASSIC}::test_fetches_have_topic_names_or_ids_and_only_changes",
            "client/consumer/test_sessions.py::test_the_end_of_a_session",
        ),
    ),
    "truncated logs are detected (KIP-320)": Feature(
        NO,
        YES,
        YES,
        YES,
        (f"{CLASSIC}::test_log_truncation_is_detected",),
    ),
    "bootstrap again when all brokers fail (KIP-899)": Feature(
        NO,
        YES,
        YES,
        YES,
        (
            "client/test_network.py::"
            "test_when_all_known_brokers_fail_the_first_addresses_are_tried_again",
        ),
    ),
    "bootstrap again when a broker requires it (KIP-1102)": Feature(
        NO,
        YES,
        YES,
        YES,
        ("client/test_rebootstrapping.py::test_bootstrap_servers_are_used_again",),
    ),
    "bootstrap again after `metadata.recovery.rebootstrap.trigger.ms` (KIP-1102)": Feature(
        NO, YES, YES, NO
    ),
    "SASL PLAIN": Feature(
        YES,
        YES,
        YES,
        YES,
        (
            "client/test_connection.py::test_sasl_plain_with_either_handshake",
            "client/real/test_producer.py::test_authentication",
        ),
    ),
    "SASL SCRAM-SHA-256, SCRAM-SHA-512": Feature(
        YES,
        YES,
        YES,
        YES,
        (
            "client/test_scram.py::test_the_exchange_of_rfc_7677",
            "client/consumer/test_real.py::test_authenticated",
        ),
    ),
    "SASL OAUTHBEARER": Feature(
        "token provider",
        "callback, OIDC",
        "callback, OIDC",
        "callback, OIDC",
        (
            "client/test_connection.py::test_each_authentication_has_a_token_of_its_own",
            "net/test_token_requests.py::test_a_token_reaches_the_broker_and_no_log",
            "net/test_token_sources.py::test_a_server_issues_a_token_for_client_credentials",
            "client/real/test_producer.py::test_a_session_is_renewed_with_a_new_token",
        ),
    ),
    "SASL GSSAPI": Feature("with `gssapi`", "not in its wheels", YES, NO),
    "authentication anew before a session ends (KIP-368)": Feature(
        NO,
        YES,
        YES,
        YES,
        (
            "client/test_connection.py::"
            "test_a_session_is_renewed_before_it_ends_and_nothing_is_lost",
        ),
    ),
    "TLS": Feature(YES, YES, YES, YES, (f"{TLS}::test_a_certificate_that_is_trusted",)),
    "TLS with a certificate of the client": Feature(
        YES,
        YES,
        YES,
        YES,
        (f"{TLS}::test_a_client_proves_who_it_is_with_its_certificate",),
    ),
    "gzip, snappy, lz4, zstd": Feature(
        "all but gzip with `cramjam`",
        YES,
        YES,
        YES,
        (
            "client/real/test_producer.py::test_each_codec_with_each_acks",
            "client/consumer/test_real.py::test_what_was_written_is_read",
        ),
    ),
    "asyncio": Feature(
        YES,
        "threads behind `confluent_kafka.aio`",
        "-",
        YES,
        ("net/test_producer.py::test_responses_are_handled_while_the_caller_never_waits",),
    ),
    "blocking calls": Feature(
        NO,
        YES,
        YES,
        "`kafkawire.blocking`",
        (
            "blocking/test_clients.py::test_produce_and_consume",
            "blocking/test_clients.py::test_every_call_of_the_asyncio_client_is_there",
        ),
    ),
    "admin: topics, configurations, groups, offsets, records": Feature(
        "without deleting groups",
        YES,
        YES,
        YES,
        tuple(
            f"client/real/test_admin.py::{name}"
            for name in (
                "test_topics_from_their_making_to_their_end",
                "test_configurations",
                "test_offsets_and_deleting_records",
                "test_groups",
            )
        ),
    ),
    "admin: SCRAM users, elections": Feature(
        NO,
        YES,
        YES,
        YES,
        (
            "cli/verbs/test_users.py::test_a_password_that_was_set_authenticates",
            "cli/verbs/test_reassign.py::test_preferred_leaders_are_elected",
        ),
    ),
    "admin: ACLs": Feature(
        NO, YES, YES, YES, ("cli/verbs/test_acls.py::test_acls_are_created_described_and_deleted",)
    ),
    "admin: transactions, hanging ones (KIP-664)": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            "client/real/test_admin.py::test_transactions_are_described_and_one_is_aborted_in_a_partition",
        ),
    ),
    "admin: quotas, reassignments, delegation tokens": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            "cli/verbs/test_quotas.py::test_quotas_are_set_described_and_removed",
            "cli/verbs/test_reassign.py::test_partitions_are_reassigned_and_that_is_cancelled",
            "cli/verbs/test_tokens.py::test_tokens_are_created_renewed_and_expired",
        ),
    ),
    "admin: features, log directories, configurations of all resources": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            "cli/verbs/test_features.py::test_features_are_lowered_and_raised",
            "cli/verbs/test_log_dirs.py::test_replicas_are_described_and_moved",
            "cli/verbs/test_configs.py::test_resources_of_several_types_are_described_and_altered",
        ),
    ),
    "metrics of the client": Feature(
        NO,
        "JSON, `stats_cb`",
        YES,
        YES,
        (
            "net/test_metrics.py::test_a_producer",
            "net/test_metrics.py::test_a_consumer",
            "net/test_metrics.py::test_share_consumers_and_admin",
        ),
    ),
    "records as Arrow columns, consumed and produced": Feature(
        NO,
        NO,
        NO,
        YES,
        (
            "net/test_column_polls.py::test_batches_have_the_records_of_polls",
            "net/test_sent_batches.py::test_the_records_and_where_they_are",
            "net/test_topic.py::test_all_records_in_the_order_of_their_partitions",
        ),
    ),
    "metrics pushed to brokers (KIP-714)": Feature(NO, YES, YES, NO),
    "interceptors (KIP-42)": Feature(
        NO,
        "plugins in C",
        YES,
        YES,
        (
            "net/test_interceptors.py::test_records_pass_interceptors_before_they_are_serialized",
            "net/test_interceptors.py::test_interceptors_see_what_is_returned_and_committed",
        ),
    ),
    "serialisers as an argument": Feature(
        YES,
        YES,
        YES,
        YES,
        (
            "net/test_serialization.py::test_keys_and_values_have_the_types_of_the_functions",
            "net/test_serialization.py::test_without_asyncio",
        ),
    ),
    "errors of deserialisers name the record, and the position stays (KIP-334)": Feature(
        NO,
        NO,
        YES,
        YES,
        (
            "net/test_serialization.py::"
            "test_the_position_stays_at_a_record_that_cannot_be_deserialized",
        ),
    ),
    "Schema Registry": Feature(
        NO,
        YES,
        "Confluent's serialisers",
        "`kafkawire.values`, the shell",
        (
            "cli/verbs/test_values.py::test_what_is_produced_is_consumed",
            "net/test_serialization.py::test_values_have_the_schemas_of_a_registry",
        ),
    ),
    "types for mypy (`py.typed`)": Feature(
        NO,
        YES,
        "-",
        "strict",
        ("packaging/test_typing.py::test_wrong_use_is_found_and_nothing_else",),
    ),
}


def drawn() -> str:
    """Return the table as Markdown."""
    lines = [f"| | {' | '.join(CLIENTS)} |\n", f"| {' | '.join(['---'] * (1 + len(CLIENTS)))} |\n"]
    lines += [
        f"| {' | '.join([name, row.aiokafka, row.confluent, row.java, row.ours])} |\n"
        for name, row in FEATURES.items()
    ]
    return "".join(lines)


def shown(page: str) -> str:
    """Return the table that the page has. Raises ValueError if it has none."""
    return page.split(BEGIN, 1)[1].split(END, 1)[0].lstrip("\n").rstrip("\n") + "\n"


def written(page: str) -> str:
    """Return the page with the table of now. Raises ValueError if it has no place for one."""
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{drawn()}\n{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(drawn(), end="")
