"""Configurations as scripts for PBS, and back."""
