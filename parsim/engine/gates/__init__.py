"""Gates that hold jobs that would fit: limits of users, groups and queues, and quotas; and dependencies of jobs."""
