"""Writes the data of the scripts: what the search finds, and what two releases differ in.

Data is JSON in ASCII in a script of its own, because a page that is opened as a file may load
scripts, but not read files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ... import naming
from ...dialect import MessageSchema
from ...headers import header_versions
from ...layout import Spot
from ...releases import Releases
from ...versions import NONE, Versions
from ..supplied import ErrorCode


def script(name: str, value: object) -> str:
    """Return a script that sets a global variable."""
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return f'"use strict";\nwindow.{name} = {text};\n'


def search(
    messages: Iterable[tuple[MessageSchema, list[Spot]]],
    errors: Iterable[ErrorCode],
    kips: Iterable[int],
) -> dict[str, Any]:
    """List messages with their fields (`depth` and name, in wire order), errors and proposals."""
    return {
        "messages": [
            [
                schema.name,
                schema.api_key,
                schema.type,
                " ".join(f"{spot.depth}:{spot.field.name}" for spot in fields),
            ]
            for schema, fields in messages
        ],
        "errors": [[error.code, error.name] for error in errors],
        "kips": list(kips),
    }


def differences(
    messages: Iterable[tuple[MessageSchema, list[Spot]]], releases: Releases
) -> dict[str, Any]:
    """Give what the difference of two releases is computed from.

    ranges: API -> its versions in each release, or 0; unstable: API -> release -> versions.
    messages: name, API, whether it is a request, versions, header versions, and the fields that
    are not the same in all of these: path, type, versions as written; versions at this place,
    those in which it is nullable, and tagged.
    """
    names = list(releases.ranges)
    apis = sorted({api for of in releases.ranges.values() for api in of})
    return {
        "releases": names,
        "ranges": {
            api: [_run(releases.ranges[name].get(api, NONE)) for name in names] for api in apis
        },
        "unstable": {
            api: of
            for api in apis
            if (of := {n: _run(r[api]) for n, r in releases.unstable.items() if api in r})
        },
        "messages": [
            [
                schema.name,
                naming.api_name(schema.name),
                int(schema.type == "request"),
                _run(schema.valid_versions),
                [[*_pair(run), header] for run, header in header_versions(schema)],
                [
                    [
                        spot.path,
                        spot.field.type,
                        str(spot.field.versions),
                        *map(_run, (spot.versions, spot.nullable, spot.tagged)),
                    ]
                    for spot in fields
                    if _changes(spot, schema.valid_versions)
                ],
            ]
            for schema, fields in messages
            if schema.type in ("request", "response")
        ],
    }


def _changes(spot: Spot, valid: Versions) -> bool:
    """Whether a field is missing, nullable or tagged in some versions of a message only."""
    runs = (spot.versions, spot.nullable, spot.tagged)
    return any(bool(run) and not run.covers(valid) for run in runs)


def _pair(versions: Versions) -> tuple[int, int]:
    return versions.low, versions.high


def _run(versions: Versions) -> list[int] | int:
    return [versions.low, versions.high] if versions else 0
