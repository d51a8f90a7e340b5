"""Finding passages for a query by their vectors, and measuring how well that works."""
