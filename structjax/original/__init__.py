"""The original simulators of the paper's tasks: the judges of every claim."""
