"""The demo on real kernels: a history made of the distribution's source, built, booted in QEMU, and bisected."""
