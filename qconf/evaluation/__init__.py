"""What a configuration is worth: periods simulated, summarised, scored, and whether a gain is more than chance."""
