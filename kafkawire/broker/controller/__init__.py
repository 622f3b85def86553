"""The controller: topics, partition leaders, configuration and producer ids, and their log."""
