"""From a commit to something that can be measured, one builder a file."""
