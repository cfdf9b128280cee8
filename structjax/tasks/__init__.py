"""Tasks: environments with a named schema, a description and seeds."""
