"""Reads configurations as Python code writes them: values as text, suggestions for names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..display import did_you_mean
from .keys import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS


def config_texts(configs: Mapping[str, object]) -> dict[str, str]:
    """Return the values as Kafka's text: `True` is `true`, a list is joined by commas.

    Raises ValueError, which names the key.
    """
    return {name: _text(name, value) for name, value in configs.items()}


def _text(name: str, value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list() | tuple() if all(isinstance(each, str) for each in value):
            return ",".join(value)
    expected = "text, a number, True or False, or a list of texts"
    raise ValueError(f"{name}={value!r}: expected {expected}")


def list_items(text: str) -> tuple[str, ...]:
    """Return the values of a list that commas separate."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def topic_config_hint(name: str) -> str:
    """Return the topic's key that is meant by an unknown one, as `; did you mean X?`."""
    topics_own = [key for key, config in TOPIC_CONFIGS.items() if config.synonym == name]
    return _hint(name, topics_own, TOPIC_CONFIGS)


def broker_config_hint(name: str) -> str:
    """Return the broker's key that is meant by an unknown one, as `; did you mean X?`."""
    of_group = name.removeprefix("group.")
    if of_group in GROUP_CONFIGS:
        return f"; {of_group!r} is a configuration of a group, which Admin.alter_group_config sets"
    config = TOPIC_CONFIGS.get(name)
    synonyms = [] if config is None or config.synonym is None else [config.synonym]
    return _hint(name, synonyms, BROKER_CONFIGS)


def _hint(name: str, synonyms: Sequence[str], names: Iterable[str]) -> str:
    return f"; did you mean {synonyms[0]!r}?" if synonyms else did_you_mean(name, names)
