"""Blocks to terminal text, a one-file page, or Markdown."""
