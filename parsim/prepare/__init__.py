"""From a workload and a system to the columns and tables that the engine reads, once."""
