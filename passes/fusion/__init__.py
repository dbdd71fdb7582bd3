"""Parts of the fuse passes: plan decides which ops form a kernel, build creates the kernels."""
