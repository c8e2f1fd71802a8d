"""The paper to the letter: its claims, its figures and each reading of its text next to ours, on generated months.

``python -m studies.letter [--quick]`` writes paper.md.
"""
