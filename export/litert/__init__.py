"""Task models as LiteRT files, for phones and other devices."""
