"""The local page of ``qconf explore``: change a configuration, and see what the jobs would have waited.

The server keeps the states of the configuration; copies of its process simulate, so that a newer change can stop them.
"""
