"""A real Slurm in namespaces of its own: exports are loaded into it by their plans, tried, and undone."""
