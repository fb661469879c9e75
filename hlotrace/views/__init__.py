"""Views: one question a file, answered in blocks."""
