"""Image features of viewpoints: synthetic, or read from files."""
