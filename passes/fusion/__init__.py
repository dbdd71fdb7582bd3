"""What the fuse passes share: plan decides which ops run as one kernel, build makes the kernels."""
