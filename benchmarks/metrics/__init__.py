"""What metrics of clients cost."""
