"""Exports tried on a batch system of this machine: loaded by their own plan, compared, and taken back."""
