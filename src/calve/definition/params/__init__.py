"""Parameters: how they are merged, evaluated and read."""
