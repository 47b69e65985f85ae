"""The tests of cpstore."""
