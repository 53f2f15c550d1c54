"""Gaussian copulas of numbers, and how tables of two numbers depart from them."""
