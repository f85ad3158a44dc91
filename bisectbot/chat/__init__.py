"""What people ask: one grammar, one set of commands, a file per transport."""
