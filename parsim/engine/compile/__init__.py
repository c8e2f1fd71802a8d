"""How numba compiles the engine, and keeps it on disk."""
