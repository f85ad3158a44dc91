"""Benchmark adapters, one a file."""
