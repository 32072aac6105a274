"""`python -m handgrad` is the command `handgrad`."""

from __future__ import annotations

from handgrad.cli import main

if __name__ == "__main__":
    main()
