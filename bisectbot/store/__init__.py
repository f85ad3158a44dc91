"""What is remembered: tables, migrations, artifacts, leases."""
