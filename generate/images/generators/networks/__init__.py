"""The paper's networks that generate images."""
