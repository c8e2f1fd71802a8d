"""``python -m qconf``: the command line."""

from qconf.cli import main

main()
