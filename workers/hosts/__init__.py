"""Host drivers, one a file."""
