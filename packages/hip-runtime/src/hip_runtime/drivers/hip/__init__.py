"""AMD GPUs, by way of hip-python."""
