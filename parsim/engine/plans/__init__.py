"""Plans of jobs that are promised a start: head jobs of lists and of queues, top jobs, advance reservations."""
