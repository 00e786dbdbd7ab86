"""Results of runs as a table: knees, intervals, exports, the report, and questions for the explorer."""
