"""What runs in or beside the user's program."""
