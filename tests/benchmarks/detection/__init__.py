"""How well steps are found: ``python -m tests.benchmarks.detection``."""
