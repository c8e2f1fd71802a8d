"""What may hold a job that would fit: limits of users, groups and queues, quotas, and other jobs."""
