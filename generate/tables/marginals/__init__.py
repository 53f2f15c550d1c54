"""Columns by themselves: released one-way marginals, denoised, and rows that match them."""
