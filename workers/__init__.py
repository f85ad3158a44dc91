"""What runs beside a host: Celery app and tasks, builders, hosts, benchmarks, monitors."""
