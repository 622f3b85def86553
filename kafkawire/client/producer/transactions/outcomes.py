"""Says what an error code means for a transaction: retried, aborted by the user, or the end.

`outcome_of` is the only place that decides (KIP-98, KIP-360, KIP-588, KIP-890, KIP-1050). A
retriable code is retried, unless a table says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode


class TransactionOutcome(Enum):
    """What an error means, the mildest first."""

    RETRY = "retried"
    FIND_COORDINATOR = "retried at the coordinator, which is looked up again"
    ABORTABLE = "abortable"
    NEW_EPOCH = "abortable, by a new epoch instead of EndTxn"
    FATAL = "fatal"
    FENCED = "fatal: another producer has the transactional id"


T = TransactionOutcome
E = ErrorCode

SEVERITY: Final = {outcome: at for at, outcome in enumerate(T)}
"""Of several errors in one response the most severe counts."""

# fmt: off
OUTCOMES: Final[Mapping[ErrorCode, TransactionOutcome]] = {
    E.CONCURRENT_TRANSACTIONS:              T.RETRY,
    E.COORDINATOR_LOAD_IN_PROGRESS:         T.RETRY,
    E.UNKNOWN_TOPIC_OR_PARTITION:           T.RETRY,
    E.COORDINATOR_NOT_AVAILABLE:            T.FIND_COORDINATOR,
    E.NOT_COORDINATOR:                      T.FIND_COORDINATOR,
    E.REQUEST_TIMED_OUT:                    T.FIND_COORDINATOR,
    E.FENCED_INSTANCE_ID:                   T.ABORTABLE,
    E.GROUP_AUTHORIZATION_FAILED:           T.ABORTABLE,
    E.ILLEGAL_GENERATION:                   T.ABORTABLE,
    E.OFFSET_METADATA_TOO_LARGE:            T.ABORTABLE,
    E.OPERATION_NOT_ATTEMPTED:              T.ABORTABLE,
    E.STALE_MEMBER_EPOCH:                   T.ABORTABLE,
    E.TOPIC_AUTHORIZATION_FAILED:           T.ABORTABLE,
    E.TRANSACTION_ABORTABLE:                T.ABORTABLE,
    E.UNKNOWN_MEMBER_ID:                    T.ABORTABLE,
    E.UNKNOWN_PRODUCER_ID:                  T.ABORTABLE,
    E.INVALID_PRODUCER_ID_MAPPING:          T.NEW_EPOCH,
    E.CLUSTER_AUTHORIZATION_FAILED:         T.FATAL,
    E.INVALID_TXN_STATE:                    T.FATAL,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: T.FATAL,
    E.UNSUPPORTED_VERSION:                  T.FATAL,
    E.INVALID_PRODUCER_EPOCH:               T.FENCED,
    E.PRODUCER_FENCED:                      T.FENCED,
}
"""Error code -> outcome, in the responses of coordinators."""

EXCEPTIONS: Final[Mapping[ApiKey, Mapping[ErrorCode, TransactionOutcome]]] = {
    # there is no transaction that could be aborted
    ApiKey.INIT_PRODUCER_ID: {
        code: T.FATAL for code, outcome in OUTCOMES.items() if outcome in (T.ABORTABLE, T.NEW_EPOCH)
    },
    # a leader does not know who is fenced: the coordinator says so when the transaction is aborted
    ApiKey.PRODUCE: dict.fromkeys((E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE), T.ABORTABLE),
}
"""API -> error code -> outcome, where it is not that of `OUTCOMES`."""

OTHERS: Final[Mapping[ApiKey, TransactionOutcome]] = {
    ApiKey.INIT_PRODUCER_ID:       T.FATAL,
    ApiKey.ADD_PARTITIONS_TO_TXN:  T.ABORTABLE,
    ApiKey.ADD_OFFSETS_TO_TXN:     T.FATAL,
    ApiKey.TXN_OFFSET_COMMIT:      T.FATAL,
    ApiKey.END_TXN:                T.FATAL,
    ApiKey.PRODUCE:                T.ABORTABLE,
}
"""API -> outcome of the error codes that no table has, unless they are retriable."""
# fmt: on


def outcome_of(api: ApiKey, code: ErrorCode) -> TransactionOutcome:
    """Return what an error code of an API means."""
    exception = EXCEPTIONS.get(api, {}).get(code)
    if exception is not None:
        return exception
    return OUTCOMES.get(code, T.RETRY if code.retriable else OTHERS[api])
