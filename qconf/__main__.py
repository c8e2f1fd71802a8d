"""The command line: ``python -m qconf``, and the script ``qconf``."""

import sys

try:
    from qconf.cli import main
except KeyboardInterrupt:  # a command handles it from then on
    sys.stderr.write("qconf: interrupted\n")
    sys.exit(130)

if __name__ == "__main__":
    main()
