"""AMD GPUs: lowering to IR for LLVM's AMDGPU backend, and code generation."""
