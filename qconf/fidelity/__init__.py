"""How near simulated starts are to recorded ones, window by window, and what configuration brings them nearest."""
