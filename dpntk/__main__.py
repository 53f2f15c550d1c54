"""`python -m dpntk` is the command `dpntk`, where its script is on no path."""

from __future__ import annotations

from .common.cli.app import main

if __name__ == "__main__":
    main()
