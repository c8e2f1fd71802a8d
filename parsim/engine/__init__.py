"""The simulator's numba kernels: arrays in, arrays out, no objects, no allocation in the event loops.

Arguments of one name mean one thing. `s` is the state of the simulation (`Simulation` or `OneList`), `v` a `Visit`; `p`
and `q` are partitions, or their waiting lists; ``first:last`` are the entries of a list, `i` is one of them, `j` a job;
``x:m`` are candidates, in the order of their turns if `is_sorted`; `now` is the instant of the event, seconds from the
first submission; `free` is a number of idle cores, `size` the number of entries of an array that are in use; `sign` is
1 to add and -1 to subtract; with `past` a job runs past the start planned for the head job.
"""
