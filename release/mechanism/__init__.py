"""The noise, and what it promises."""
