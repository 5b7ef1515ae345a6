"""Tables, pictures and HTML pages from directories of runs."""
