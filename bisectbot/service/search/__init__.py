"""What bisections are made of: their candidates, experiments, checks and verdicts. `bisections` opens them, `advance`
takes them on."""
