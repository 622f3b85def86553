"""Compression of record batches: gzip, snappy, lz4, zstd, in whole and in part.

codecs: compress ─▶ bytes        decompression: opened(bytes) ─▶ pieces, limited ─▶ records
"""
