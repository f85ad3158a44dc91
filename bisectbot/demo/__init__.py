"""The whole pipeline on an example history: a configuration of the service, nothing more."""
