"""Vision-and-language navigation on graphs of viewpoints (R2R, CVDN)."""
