"""Parts of the fuse passes: plan decides which ops run as one kernel, build makes the kernels."""
