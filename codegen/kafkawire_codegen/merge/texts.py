"""Takes the purposes of fields from another set of schemas, where a field is the same."""

from __future__ import annotations

from dataclasses import replace

from ..dialect import MessageSchema
from ..evolution import compare
from .changes import changes
from .correspondence import correspondence
from .normal import Normal, normal, to_schema


def reworded(
    message: MessageSchema, words: MessageSchema | None
) -> tuple[MessageSchema, list[str]]:
    """Replace the texts of a message by those of another form of it.

    Returns also the paths of texts that the other form has not: a field that it has without a text
    loses its own. Where nothing else differs, the other form is returned as it is.
    """
    if words is None:
        return message, [message.name]
    if not compare([words], [message]).changed and not list(changes(words, message, ("", ""))):
        return words, []
    ours, theirs = normal(message), normal(words)
    same = correspondence(ours, theirs)
    abouts: dict[tuple[str, str], str] = {}
    for (name, counterpart), renamed in same.fields.items():
        for field in theirs.structs[counterpart]:
            key = name, renamed.get(field.name, field.name).lower()
            abouts[key] = abouts.get(key) or field.about
    structs = {
        name: tuple(
            replace(field, about=abouts.get((name, field.name.lower()), field.about))
            for field in fields
        )
        for name, fields in ours.structs.items()
    }
    missing = [
        f"{message.name}: {name}.{field.name}" if name != message.name else f"{name}.{field.name}"
        for name, fields in ours.structs.items()
        for field in fields
        if field.about and (name, field.name.lower()) not in abouts
    ]
    common = ours.common | {
        name: theirs.common[other] for other, name in same.structs.items() if other in theirs.common
    }
    head = replace(ours.head, about=words.about or message.about)
    return to_schema(Normal(head, structs, common)), missing
