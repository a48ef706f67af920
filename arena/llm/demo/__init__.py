"""An OpenAI-compatible endpoint on loopback that plays models and judges of known quality."""
