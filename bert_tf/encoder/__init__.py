"""The network: ids in, vectors out. It knows neither strings nor tasks."""
