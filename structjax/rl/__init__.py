"""Reinforcement learning: group objectives, a critic's, and evolution strategies."""
