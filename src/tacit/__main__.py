"""``python -m tacit`` is the command ``tacit``, for where the latter is not on the path."""

import sys

from tacit.cli import main

if __name__ == "__main__":
    sys.exit(main())
