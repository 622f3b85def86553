"""Several processes: work items out, ordered output back."""
