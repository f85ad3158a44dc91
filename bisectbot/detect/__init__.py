"""Where a level changed: numbers in, steps out. Pure."""
