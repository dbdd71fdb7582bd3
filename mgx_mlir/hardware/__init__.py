"""Facts about CPUs and GPUs from data sheets, and about this machine."""
