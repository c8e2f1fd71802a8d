"""The study: the paper's claims beside ours on generated months, and public logs month by month.

``python -m studies.paper [--quick] [--out docs]`` writes study.md.
"""
