"""Devices, processes and threads to compute with."""
