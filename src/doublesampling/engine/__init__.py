"""The engine: millions of realizations on threads, on a GPU, on a cluster, with the same numbers."""
