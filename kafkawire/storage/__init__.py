"""The log directories of a broker: logs of partitions on a disk, in Kafka's file formats."""
