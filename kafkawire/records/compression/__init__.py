"""Compression of record batches: gzip, snappy, lz4, zstd, in whole and in part.

codecs: compress ─▶ bytes        decompression: opened(bytes) ─▶ limited bytes ─▶ records

A codec is a module (compress, decompress, pieces) and a row of `codecs.CODECS`.
"""
