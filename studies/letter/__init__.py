"""The paper to the letter: its claims, its figures and every reading of its text beside ours, on generated months.

``python -m studies.letter [--quick]`` writes paper.md.
"""
