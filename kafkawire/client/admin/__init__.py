"""The admin client's machine: calls that are retried until they complete."""
