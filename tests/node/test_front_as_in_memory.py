"""What clients see of a node is what they see of a cluster in memory: the same tests."""

from __future__ import annotations

import pytest

from ..broker.consumer import coordinator
from ..broker.groups.test_group_offsets import (
    test_committing_keeps_a_member_alive,
    test_who_may_commit,
)
from ..broker.groups.test_groups import (
    test_a_first_member_is_given_an_id_then_leads,
    test_a_member_that_does_not_rejoin_in_time_is_removed,
    test_a_member_that_never_syncs_is_removed,
    test_a_member_with_heartbeats_is_not_removed_while_others_are_slow,
    test_a_member_without_heartbeats_is_removed,
    test_a_second_member_makes_the_first_join_again,
    test_leaving_rebalances_and_an_empty_group_is_empty,
    test_most_votes_win_among_what_all_have,
    test_protocols_must_have_one_in_common,
)
from ..broker.groups.test_static_members import (
    test_a_static_member_rejoins_without_a_rebalance,
    test_a_static_member_stays_while_it_is_away,
)
from ..broker.handlers.test_fetch import (
    test_a_fetch_waits_for_records,
    test_a_fetch_waits_no_longer_than_it_says,
    test_errors_are_not_waited_with,
    test_max_bytes_covers_all_partitions,
    test_min_bytes_are_counted,
    test_requests_behind_a_delayed_one_wait_for_it,
)
from ..broker.log.test_log import (
    test_a_batch_of_a_transaction_needs_a_transactional_id,
    test_a_batch_that_comes_again_is_stored_once,
    test_a_gap_in_the_sequence_is_rejected,
    test_a_log_append_time_is_not_a_clients,
    test_acks_0_closes_where_the_log_refuses_the_records,
    test_acks_0_has_no_response_and_an_error_closes,
    test_acks_are_0_1_or_all,
    test_epochs_fence,
    test_errors_name_the_records_that_are_wrong,
    test_offsets_are_assigned_in_order,
    test_offsets_by_time,
    test_records_are_deleted_up_to_an_offset,
    test_rejected_records_are_not_stored,
    test_sequences_wrap,
    test_the_maximum_timestamp_is_that_of_the_records,
    test_what_is_stored_is_what_was_produced,
    test_who_sends_invalid_records_gets_the_log_start_offset,
)
from ..broker.replication.test_fetch_sessions import (
    test_a_session_does_not_change_between_names_and_ids,
    test_a_session_ends_when_it_is_closed,
    test_a_session_forgets_topics,
    test_a_session_reads_partitions_round_robin,
    test_a_session_reports_more_data_even_without_room_for_it,
    test_a_session_returns_a_partition_when_its_error_is_over,
    test_a_session_returns_only_changed_partitions,
    test_an_unexpected_session_epoch_is_an_error,
)
from .front_harness import NodeHarness

__all__ = [
    "test_acks_0_closes_where_the_log_refuses_the_records",
    "test_who_sends_invalid_records_gets_the_log_start_offset",
    "test_a_batch_of_a_transaction_needs_a_transactional_id",
    "test_a_log_append_time_is_not_a_clients",
    "test_the_maximum_timestamp_is_that_of_the_records",
    "test_a_batch_that_comes_again_is_stored_once",
    "test_a_fetch_waits_for_records",
    "test_a_fetch_waits_no_longer_than_it_says",
    "test_a_first_member_is_given_an_id_then_leads",
    "test_a_gap_in_the_sequence_is_rejected",
    "test_a_member_that_does_not_rejoin_in_time_is_removed",
    "test_a_member_that_never_syncs_is_removed",
    "test_a_member_with_heartbeats_is_not_removed_while_others_are_slow",
    "test_a_member_without_heartbeats_is_removed",
    "test_a_second_member_makes_the_first_join_again",
    "test_a_session_does_not_change_between_names_and_ids",
    "test_a_session_ends_when_it_is_closed",
    "test_a_session_forgets_topics",
    "test_a_session_reads_partitions_round_robin",
    "test_a_session_reports_more_data_even_without_room_for_it",
    "test_a_session_returns_a_partition_when_its_error_is_over",
    "test_a_session_returns_only_changed_partitions",
    "test_a_static_member_rejoins_without_a_rebalance",
    "test_a_static_member_stays_while_it_is_away",
    "test_acks_0_has_no_response_and_an_error_closes",
    "test_acks_are_0_1_or_all",
    "test_an_unexpected_session_epoch_is_an_error",
    "test_committing_keeps_a_member_alive",
    "test_epochs_fence",
    "test_errors_are_not_waited_with",
    "test_errors_name_the_records_that_are_wrong",
    "test_leaving_rebalances_and_an_empty_group_is_empty",
    "test_max_bytes_covers_all_partitions",
    "test_min_bytes_are_counted",
    "test_most_votes_win_among_what_all_have",
    "test_offsets_are_assigned_in_order",
    "test_offsets_by_time",
    "test_protocols_must_have_one_in_common",
    "test_records_are_deleted_up_to_an_offset",
    "test_rejected_records_are_not_stored",
    "test_requests_behind_a_delayed_one_wait_for_it",
    "test_sequences_wrap",
    "test_what_is_stored_is_what_was_produced",
    "test_who_may_commit",
]


@pytest.fixture
def harness() -> NodeHarness:
    harness = NodeHarness(topics={"t": 1, "u": 2})
    coordinator(harness.client())
    harness.advance(1.0)  # the topic of the offsets is created
    return harness
