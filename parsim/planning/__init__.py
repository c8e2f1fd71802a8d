"""Planning schedulers: conservative backfilling, planning by a policy, dynP, and multiple-queue backfilling."""
