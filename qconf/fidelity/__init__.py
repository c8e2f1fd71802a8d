"""How near simulated starts are to recorded ones, and which configuration brings them nearest: ``qconf fidelity``."""
