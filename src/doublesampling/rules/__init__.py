"""The mathematics: numbers in, numbers out, the same source for CPU threads and CUDA threads."""
