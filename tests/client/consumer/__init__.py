"""The consumer's machines: each alone, all together against the broker machine and the real one."""
