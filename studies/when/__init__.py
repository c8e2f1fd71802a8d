"""Which strategy wins when: strategies over load, running limits and readings of a merge, on generated months.

``python -m studies.when [--quick]`` writes when.md.
"""
