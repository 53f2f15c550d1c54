"""Marginals of a table: histograms of columns, and of pairs and triples of columns."""
