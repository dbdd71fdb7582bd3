"""Facts about CPUs and GPUs: data sheets, and the machine that this runs on."""
