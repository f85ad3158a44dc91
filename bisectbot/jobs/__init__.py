"""What is run: job files, axes, units, KPIs."""
