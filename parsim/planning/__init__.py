"""Planning schedulers: conservative backfilling, planning by a policy, dynP, and multiple-queue backfilling.

In the kernels `waits` is the number of waiting jobs, `size` that of segments of a profile, `of` the line of each job.
"""
