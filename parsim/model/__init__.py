"""What goes in and what comes out: the workload, the system, the state it begins in, and the schedule."""
