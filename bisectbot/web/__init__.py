"""What people see: JSON API, pages, metrics, the workers' endpoint."""
