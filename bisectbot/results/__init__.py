"""What came out: parsers of raw logs, run matrices, comparison, LKP table."""
