"""Profiling and visualization for XLA: capture a model, read what the compiler made of it, see it."""

from __future__ import annotations

__version__ = "0.1.0"
