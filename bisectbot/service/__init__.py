"""Who does it unattended: watch, plan, dispatch, reap, detect, advance, report, send."""
