"""The search for the best order of the waiting list, and its candidates."""
