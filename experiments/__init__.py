"""Experiments: a plan, a figure and what they say of a claim of the sources. docs/EXPERIMENTS.md"""
