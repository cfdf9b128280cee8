"""structjax: interpretable control policies, written by an LLM, at JAX speed."""
