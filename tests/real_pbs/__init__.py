"""Exports on a real OpenPBS, in namespaces of its own; skipped where PBS_EXEC names no installation."""
