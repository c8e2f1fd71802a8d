"""A recommendation for people: the terminal's table, figures, and a page that opens anywhere."""
