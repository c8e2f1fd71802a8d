"""Waiting lists of the general event loop: their jobs and entries, admission to them, and lines of jobs alike."""
