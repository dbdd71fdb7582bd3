"""Facts about processors and GPUs: data sheets, and the machine that this runs on."""
