"""Parsers of raw logs, one file each, registered by name."""
