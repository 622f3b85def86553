"""The verbs that read captures."""
