"""The strategies that divide the machine into partitions, and their mathematics."""
