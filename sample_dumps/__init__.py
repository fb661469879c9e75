"""Small real bundles made with this tool."""
