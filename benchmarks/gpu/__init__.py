"""Parts of `benchmarks.gpu_scale`."""
