"""The strategy `auto`: the search for the best order of the waiting jobs, and its other candidates."""
