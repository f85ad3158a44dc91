"""What is recorded beside a run, one collector a file."""
