"""What a person may write for an API: `Fetch`, `fetch`, `FetchRequest`, `list_offsets`, its key."""

from __future__ import annotations

from difflib import get_close_matches

import typer


def api_key(text: str) -> int:
    """Find the API key that a name or number means; a usage error suggests what was meant."""
    from kafkawire.messages import REGISTRY

    plain = text.replace("_", "").replace("-", "").lower()
    known = {
        info.name.removesuffix("Request").lower(): info.api_key
        for info in REGISTRY
        if info.type == "request" and info.api_key is not None
    }
    if plain.isdigit():
        if int(plain) in known.values():
            return int(plain)
        raise typer.BadParameter(f"no API has the key {text}", param_hint="--api")
    found = known.get(plain.removesuffix("request").removesuffix("response"))
    if found is None:
        close = get_close_matches(plain, known, 1)
        names = {i.name.lower(): i.name for i in REGISTRY}
        hint = f"; did you mean {names[close[0] + 'request'][:-7]}?" if close else ""
        raise typer.BadParameter(f"no API is called {text!r}{hint}", param_hint="--api")
    return found


def message_name(text: str, direction: str) -> str:
    """Find the message that a name means: a message's own name, or an API's with the direction."""
    from kafkawire.messages import REGISTRY

    if text in REGISTRY:
        return text
    found = REGISTRY.find(direction, api_key(text))
    if found is None:
        raise typer.BadParameter(f"{text} has no {direction}", param_hint="--api")
    return found.name


def direction_of(text: str) -> str:
    """Check `request` or `response`."""
    if text not in ("request", "response"):
        raise typer.BadParameter(
            f"{text!r} is neither request nor response", param_hint="--direction"
        )
    return text
