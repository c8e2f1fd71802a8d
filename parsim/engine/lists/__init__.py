"""Waiting lists: which jobs are in each, in which entries, and which of them are alike."""
