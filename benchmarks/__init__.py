"""cpstore beside the official savers, on the same operations and data.

python -m benchmarks [--quick] [--only NAME ...] [--out DIR]
"""
