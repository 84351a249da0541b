"""The machine that runs us: GPUs, compilers, drivers, and whose fault a failure is."""
