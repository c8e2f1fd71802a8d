"""Lets jobs wait before they may become top jobs, for which PBS reserves. Written by qconf export.

A queuejob hook: a new job has topjob_ineligible from its submission on, until qconf-reserve takes it away.
"""

import pbs

QUEUES = {
    "",  # the default queue
    "route",
    "small",
    "large",
}

event = pbs.event()
if (event.job.queue.name if event.job.queue else "") in QUEUES:
    event.job.topjob_ineligible = True
event.accept()
