"""Rehearse exports on a private batch system: load one by its own plan, compare, and undo it."""
