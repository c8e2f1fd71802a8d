"""Predictions of job starts, for ``qconf predict``: plans by walltimes, likely run times, idle windows."""
