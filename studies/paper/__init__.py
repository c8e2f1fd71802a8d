"""Every strategy, trained on one period and evaluated on the next: on generated months and on public logs.

``python -m studies.paper [--quick]`` writes study.md.
"""
