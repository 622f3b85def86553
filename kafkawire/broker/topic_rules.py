"""How the records that clients produce to each topic are validated."""

from __future__ import annotations

from .configs import Settings
from .log.validation import Rules, rules
from .metadata_cache import TopicsMetadata


class TopicRules:
    """The rules of topics; each is made when it is first needed, until a configuration changes."""

    def __init__(self, settings: Settings, topics: TopicsMetadata) -> None:
        self._settings = settings
        self._topics = topics
        self._by_name: dict[str, Rules] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def of(self, name: str) -> Rules:
        """Return the rules of a topic; those of the broker for one that is unknown."""
        topic_rules = self._by_name.get(name)
        if topic_rules is None:
            topic = self._topics.get(name)
            configs = {} if topic is None else topic.configs
            topic_rules = self._by_name[name] = rules(self._settings, configs)
        return topic_rules

    def clear(self) -> None:
        """Read the configurations again."""
        self._by_name.clear()
