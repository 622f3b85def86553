"""The `kafkawire` command line: one module a verb."""
