"""Input of the verbs: captures, files, hex text, filters, clusters."""
