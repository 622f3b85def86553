"""The `kafkawire` command line: one module per verb."""
