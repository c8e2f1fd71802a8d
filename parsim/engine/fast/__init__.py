"""Loops for one list that is alone on its cores: the same starts as the event loop's, sooner."""
