"""DescribeUserScramCredentials: lists the SCRAM credentials of users, without their secrets.

v0   the first; flexible
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from ...messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ...metadata import MetadataImage
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request

E = ErrorCode
TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN: Final = "Attempt to describe a user credential that does not exist: "


def handle(
    broker: Broker,
    _request: Request,
    body: DescribeUserScramCredentialsRequest,
    _connection: Connection,
    _now: float,
) -> DescribeUserScramCredentialsResponse:
    """Describe credentials, from the metadata that was published last."""
    return describe_scram_credentials(broker.image, body)


def error_response(
    _body: DescribeUserScramCredentialsRequest, error: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    """Return a response with the error."""
    return DescribeUserScramCredentialsResponse(error_code=error, error_message=error.name)


def describe_scram_credentials(
    image: MetadataImage, body: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the credentials of users, of all if the request has none."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), record in sorted(image.scram_credentials.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=record.iterations)
        infos.setdefault(user, []).append(info)
    times = Counter([each.name for each in body.users or []])
    results = []
    for user in times or infos:
        result = DescribeUserScramCredentialsResult(user=user)
        if times[user] > 1:
            result.error_code, result.error_message = E.DUPLICATE_RESOURCE, TWICE + user
        elif user not in infos:
            result.error_code, result.error_message = E.RESOURCE_NOT_FOUND, UNKNOWN + user
        else:
            result.credential_infos = infos[user]
        results.append(result)
    return DescribeUserScramCredentialsResponse(results=results)
