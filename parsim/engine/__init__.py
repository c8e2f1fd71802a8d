"""The simulator's numba kernels: arrays in, arrays out, no objects, no allocation in the event loops."""
