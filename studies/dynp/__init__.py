"""Streit's dynP: generated job sets, load sweeps, grids of bounds, and the published tables next to ours.

``python -m studies.dynp --help``; ``python -m studies.dynp.published FOLDER`` prints the tables of the page on dynP.
"""
