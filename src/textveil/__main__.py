"""`python -m textveil`: the command line without its script.

In: the arguments. Out: the exit code of `cli.main`.
Not here: the commands (`cli`).
"""

import sys

from textveil.cli import main

if __name__ == "__main__":
    sys.exit(main())
