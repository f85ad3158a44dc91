"""Who changed it: observations in, next experiments and verdict out. Pure."""
