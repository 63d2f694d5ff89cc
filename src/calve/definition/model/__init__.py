"""The one model of a workflow definition, in Maestro's words."""
