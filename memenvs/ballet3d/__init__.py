"""Ballet3D: watch dancers in a 3D room while turning, then produce the dance of one of them."""
