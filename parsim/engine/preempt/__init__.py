"""Preemption: which running jobs make room for a job of a higher tier, and how they are interrupted."""
