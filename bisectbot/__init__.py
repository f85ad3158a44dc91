"""bisectbot: watches trees, benchmarks what is new, names the commit that changed performance."""

__version__ = "0.1.0"
