"""The command `tallyhook`: one module a group of commands; the only place that prints and reads the environment."""
