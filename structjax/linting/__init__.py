"""The lint: what is suspicious in a program that is accepted."""
