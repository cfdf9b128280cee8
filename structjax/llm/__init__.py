"""The LLM layer: providers, transcripts, and what a reply says."""
