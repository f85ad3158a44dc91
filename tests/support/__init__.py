"""Real servers and small helpers that several rooms' tests share."""
