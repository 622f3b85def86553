"""Says what to look at or change after an error of a cluster's security, for each error code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkawire import ErrorCode as E

ACL: Final = "the user of the connection needs an ACL for it (kafkawire acls --add, by an admin)"
CREDENTIALS: Final = "check sasl.username, sasl.password and sasl.mechanism in --config FILE"
LISTED: Final = "kafkawire tokens lists those that the user may see"

ADVICE: Final[Mapping[E, str]] = {
    E.TOPIC_AUTHORIZATION_FAILED: ACL,
    E.GROUP_AUTHORIZATION_FAILED: ACL,
    E.CLUSTER_AUTHORIZATION_FAILED: ACL,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ACL,
    E.DELEGATION_TOKEN_AUTHORIZATION_FAILED: ACL,
    E.SECURITY_DISABLED: "ACLs need authorizer.class.name on brokers and controllers",
    E.UNSUPPORTED_SASL_MECHANISM: "set sasl.mechanism to one of the listener's",
    E.ILLEGAL_SASL_STATE: "check security.protocol: the listener may have no SASL",
    E.SASL_AUTHENTICATION_FAILED: CREDENTIALS,
    E.UNACCEPTABLE_CREDENTIAL: "the user name must not be empty, and --iterations as allowed",
    E.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key on brokers and controllers",
    E.DELEGATION_TOKEN_NOT_FOUND: LISTED,
    E.DELEGATION_TOKEN_EXPIRED: LISTED,
    E.DELEGATION_TOKEN_OWNER_MISMATCH: "connect as the owner of the token, or as a renewer of it",
    E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "connect as a user, with SASL or a client certificate (--config FILE), and not with a token"
    ),
    E.INVALID_PRINCIPAL_TYPE: "principals are User:NAME",
    E.PRINCIPAL_DESERIALIZATION_FAILURE: "use the same principal.builder.class on all brokers",
}


def with_advice(code: E, text: str) -> str:
    """Add the advice for an error code to the text of the error."""
    advice = ADVICE.get(code)
    return text if advice is None else f"{text.rstrip('.')}; {advice}"
