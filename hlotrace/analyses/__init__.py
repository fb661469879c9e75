"""Tables in, table out: one subject a file."""
