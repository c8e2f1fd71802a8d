"""When jobs will start: plans by walltimes, run times as they are, idle windows."""
