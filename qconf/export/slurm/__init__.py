"""Configurations as files for Slurm, and back."""
