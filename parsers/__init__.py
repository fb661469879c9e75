"""Readers: one dump format a file."""
