"""Tensors of PyTorch as arguments of kernels, without a copy: the two libraries share memory by DLPack."""

import numpy as np
from gallery import command_line
from numba import hip

SMALL = 40


@hip.jit
def clip_gradient(gradient, limit):
    i, j = hip.grid(2)
    if i < gradient.shape[0] and j < gradient.shape[1]:
        gradient[i, j] = min(max(gradient[i, j], -limit), limit)


def main(size: int = 300) -> None:
    try:
        import torch
    except ImportError:
        print("torch tensors: not run, PyTorch is not installed (pip install torch); float64")
        return
    place = "cpu" if hip.get_current_device().is_cpu else "cuda"  # PyTorch's name for AMD GPUs, too
    tensor = torch.linspace(-3, 3, size * size, dtype=torch.float64, device=place).reshape(size, size)
    expected = np.clip(tensor.cpu().numpy(), -1, 1)
    array = hip.from_dlpack(tensor)
    grid = -(-size // 16), -(-size // 16)
    clip_gradient[grid, (16, 16)](array, 1.0)
    hip.synchronize()

    np.testing.assert_array_equal(tensor.cpu().numpy(), expected)
    back = torch.from_dlpack(array)
    assert back.data_ptr() == tensor.data_ptr()
    clip_gradient[grid, (16, 16)](tensor, 0.5)  # or simply so
    hip.synchronize()
    np.testing.assert_array_equal(back.cpu().numpy(), np.clip(expected, -0.5, 0.5))
    print(f"torch tensors: {size} x {size} float64 clipped in place, equal to NumPy's")


if __name__ == "__main__":
    command_line.run(main)
