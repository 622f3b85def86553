"""The rules of `kafkawire diagnose`, one module per subject."""
