"""What people ask and are told: commands, requests, comparisons and tests, subscriptions, judgements, the state."""
