"""The resources that jobs take: cores over time, nodes, types of nodes, and chunks placed on particular nodes."""
