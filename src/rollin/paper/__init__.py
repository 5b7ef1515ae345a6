"""The paper's tables and figures as data: their cells, and the numbers that were published."""
