"""Extracts what tables need from messages: headers, and fields of undecoded bodies."""
