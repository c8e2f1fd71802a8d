"""Benchmarks, each a command of its own."""
