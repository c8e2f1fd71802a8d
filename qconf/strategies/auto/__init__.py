"""The search for the best order of the waiting list, and what it tries."""
