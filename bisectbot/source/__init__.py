"""What happened to the code: git mirror, heads, commit graph, what is really new."""
