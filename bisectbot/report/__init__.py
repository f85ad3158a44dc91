"""What is said: findings, mail text, machine-readable twin. Pure."""
