"""Turns a workload and a system into the columns and tables that the engine reads."""
