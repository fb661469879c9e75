"""A profiler's trace as tables: lanes of events from either format, op times, steps and collectives made of them."""
