"""Disks: files of the operating system, and memory that can crash; log directories on them."""
