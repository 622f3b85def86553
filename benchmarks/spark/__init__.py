"""The Spark job: compared with a single process, its planning, its scaling."""
