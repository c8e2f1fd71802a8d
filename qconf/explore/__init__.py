"""The local page of ``qconf explore``: a configuration is changed, and what the jobs would have waited is shown.

The server keeps the states of the configuration; copies of its process simulate, so that a newer change can end them.
"""
