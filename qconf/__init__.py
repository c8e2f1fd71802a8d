"""qconf: last month's job log in, the best configuration for it out."""

__version__ = "0.1.0"
