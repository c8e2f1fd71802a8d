"""Searching: what proposes configurations, asks the simulator, and keeps the best."""
