"""Commands for inspecting and judging devices."""
