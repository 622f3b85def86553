"""What verbs are given: captures, files, hex text, filters, clusters."""
