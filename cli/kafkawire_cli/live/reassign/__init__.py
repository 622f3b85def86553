"""Where replicas are and shall be (`kafkawire reassign`)."""
