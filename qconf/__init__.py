"""qconf: finds a better configuration of queues and scheduler for a site from its job log."""

__version__ = "0.1.0"
