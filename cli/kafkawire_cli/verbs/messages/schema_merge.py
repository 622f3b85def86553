"""`kafkawire schema merge`: merges the schemas of several releases into one timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafkawire.display import plural, printable

from ...input.schema_sources import load, readable

if TYPE_CHECKING:
    from kafkawire_codegen.merge.timeline import Release, Timeline
    from kafkawire_codegen.merge.writing import Written


def merge(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Releases, oldest first: a directory, jar or ZIP archive, as NAME=SOURCE unless "
            "its jar says its release; or a directory with a releases.json.",
        ),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Output directory.")],
    about_from: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Take the texts of messages and fields that this directory has, too, from it, "
            "and its comments.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Overwrite schemas in DIR that differ.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Merge releases into one timeline: each version that was ever released.

    \b
    kafkawire schema merge old/kafka-clients-*.jar --output all
    kafkawire schema merge 4.2=kafka_4.2/libs 4.3=kafka_4.3/libs --output all
    kafkawire schema merge schemas 4.4=libs --about-from schemas --overwrite \\
        --output schemas

    The layout of a version is that of the newest release that has it. Versions
    whose layout changed without a new number are listed with what they lost and
    gained, and noted in a comment. Sources of the same name are one release.

    Texts ("about") are those of the sources: review them, and their licence,
    before you publish the result; --about-from keeps your own. The exit code is
    1 if versions could not be merged.
    """
    from kafkawire_codegen.merge.timeline import timeline, with_texts_of
    from kafkawire_codegen.merge.writing import write_timeline

    with readable():
        merged = timeline(_releases(sources, about_from))
        texts: list[str] = []
        if about_from is not None:
            merged, texts = with_texts_of(merged, load((about_from,)))
        written = write_timeline(merged, out, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(_json(merged, texts, written), indent=2))
    else:
        for line in _lines(merged, texts, written, out):
            typer.echo(printable(line))
    if merged.unmerged:
        raise typer.Exit(1)


def _releases(sources: list[str], about_from: Path | None) -> list[Release]:
    """Read the releases; a release without a name is a usage error."""
    from dataclasses import replace

    from kafkawire_codegen.merge.reading import (
        NamelessRelease,
        comments,
        named_source,
        read_releases,
    )

    try:
        named = [named_source(source) for source in sources]
    except NamelessRelease as error:
        raise typer.BadParameter(printable(str(error)), param_hint="SOURCE...") from None
    releases = read_releases(named)
    if about_from is None:
        return releases
    # as comments of the oldest release, they come first
    oldest = replace(releases[0], comments={**comments(about_from), **releases[0].comments})
    return [oldest, *releases[1:]]


def _lines(merged: Timeline, texts: list[str], written: Written, out: Path) -> Iterator[str]:
    for change in merged.changes:
        yield from change.lines()
    yield from map(str, merged.renumbered)
    yield from map(str, merged.unmerged)
    for text in texts:
        yield f"{text}: the text is that of a source: review it"
    for name in written.others:
        yield f"{out / name}: not of this timeline, and left as it is"
    versions = sum(len(message.valid_versions) for message in merged.messages)
    yield (
        f"{plural(len(merged.messages), 'message')}, {plural(versions, 'version')}, "
        f"{plural(len(merged.releases.ranges), 'release')} in {out}; "
        f"{plural(written.changed, 'file')} changed, "
        f"{plural(len(merged.changes), 'version')} changed in place, "
        f"{len(merged.unmerged)} not merged"
    )


def _json(merged: Timeline, texts: list[str], written: Written) -> dict[str, object]:
    return {
        "messages": {m.name: str(m.valid_versions) for m in merged.messages},
        "releases": list(merged.releases.ranges),
        "changed_in_place": [asdict(change) for change in merged.changes],
        "renumbered": [asdict(each) for each in merged.renumbered],
        "not_merged": [
            {**asdict(each), "versions": str(each.versions)} for each in merged.unmerged
        ],
        "texts_to_review": texts,
        "files_changed": written.changed,
        "other_files": written.others,
    }
