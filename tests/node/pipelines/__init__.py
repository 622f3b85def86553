"""Pipelines in the simulation of a whole cluster: they read, process and write in transactions."""
