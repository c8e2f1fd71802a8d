"""The paper's claims beside ours on generated months, and every strategy on public logs, period by period.

``python -m studies.paper [--quick]`` writes study.md.
"""
