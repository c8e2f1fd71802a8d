"""The strategies that divide the machine into partitions, with the programs and searches that they use."""
