"""Signing releases, and deciding whose releases are accepted."""
