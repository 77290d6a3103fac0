"""AMD GPUs: lowering to the AMDGPU backend's IR, and what makes code of it."""
