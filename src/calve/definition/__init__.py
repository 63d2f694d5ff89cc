"""What a user may write: workflows, steps, params, triggers. Pure."""
