"""Tables and figures of the results pages, one module a page."""
