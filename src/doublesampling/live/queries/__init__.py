"""SQL queries that read an experiment. Nothing in this package writes."""
