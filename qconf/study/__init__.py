"""The study: the paper's claims beside ours on generated months, and public logs month by month.

``python -m qconf.study [--quick] [--out docs]`` writes study.md.
"""
