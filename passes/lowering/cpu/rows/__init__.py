"""Row kernels on CPUs: softmax, norms, sums, extremes, scans, top-k."""
