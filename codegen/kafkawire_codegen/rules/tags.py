"""Rules for tagged fields (KIP-482).

A tag and its tagged versions come together; the versions are open-ended and flexible.
"""

from __future__ import annotations

from typing import Final

from .rule import FieldAt, FieldRule

LAST_TAG: Final = 0x7FFF_FFFE
"""The highest tag: an unsigned varint of 31 bits, the last of which Kafka reserves."""


def _without_versions(at: FieldAt) -> str | None:
    schema = at.written.schema
    if schema.tag is None or schema.tagged_versions:
        return None
    return f"tag {schema.tag} needs taggedVersions beside it"


def _without_tag(at: FieldAt) -> str | None:
    schema = at.written.schema
    if not schema.tagged_versions or schema.tag is not None:
        return None
    return f"tagged in {schema.tagged_versions}, but without a tag: give one"


def _range(at: FieldAt) -> str | None:
    tag = at.written.schema.tag
    if tag is None or 0 <= tag <= LAST_TAG:
        return None
    return f"a tag is 0 to {LAST_TAG}, not {tag}"


def _closed(at: FieldAt) -> str | None:
    tagged = at.written.schema.tagged_versions
    if not tagged or tagged.open_ended:
        return None
    return f"tagged versions cannot end: {tagged.low}+ is right, not {tagged}"


def _outside(at: FieldAt) -> str | None:
    schema = at.written.schema
    if schema.versions.covers(schema.tagged_versions):
        return None
    return f"tagged in {schema.tagged_versions}, but the field is only in {schema.versions}"


def _inflexible(at: FieldAt) -> str | None:
    flexible = at.message.schema.flexible_versions
    tagged = at.written.schema.tagged_versions & at.message.schema.valid_versions
    if flexible.covers(tagged):
        return None
    return f"tagged in {tagged}, but the message is flexible only in {flexible}"


def _map_key(at: FieldAt) -> str | None:
    schema = at.written.schema
    if not schema.map_key or (schema.tag is None and not schema.tagged_versions):
        return None
    return "a tagged field may be left out, so it cannot be a key"


def _nullability(at: FieldAt) -> str | None:
    schema = at.written.schema
    nullable = schema.nullable_versions & schema.tagged_versions
    if not nullable or nullable == schema.tagged_versions:
        return None
    return f"nullable in {nullable} of the tagged versions {schema.tagged_versions}: all or none"


TAG_RULES: Final = (
    FieldRule(
        "tag-alone",
        "a tag has tagged versions",
        "tag",
        ("taggedVersions",),
        _without_versions,
    ),
    FieldRule(
        "tagged-versions-alone",
        "who is tagged has a tag",
        "taggedVersions",
        ("tag",),
        _without_tag,
    ),
    FieldRule("tag-range", "a tag fits 31 bits", "tag", (), _range),
    FieldRule(
        "tagged-versions-closed",
        "tagged versions are open-ended",
        "taggedVersions",
        (),
        _closed,
    ),
    FieldRule(
        "tagged-versions-outside",
        "a field is tagged only in versions that have it",
        "taggedVersions",
        ("versions",),
        _outside,
    ),
    FieldRule(
        "tagged-versions-inflexible",
        "a field is tagged only in flexible versions",
        "taggedVersions",
        (),
        _inflexible,
    ),
    FieldRule(
        "tagged-map-key",
        "a map key is not tagged",
        "mapKey",
        ("tag", "taggedVersions"),
        _map_key,
    ),
    FieldRule(
        "tagged-nullability",
        "a tagged field is nullable in all tagged versions or in none",
        "nullableVersions",
        ("taggedVersions",),
        _nullability,
    ),
)
