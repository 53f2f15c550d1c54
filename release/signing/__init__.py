"""Who signed a release, and whose releases are accepted."""
