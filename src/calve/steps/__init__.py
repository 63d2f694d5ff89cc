"""The runtimes of the step types: what carries out a step."""
