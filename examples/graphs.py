"""A graph: copies and kernels of a step are recorded once, and launched as a unit for each step."""

import time

import numpy as np
from gallery import command_line
from numba import hip

SMALL = 300
THREADS = 128


@hip.jit
def predict(state, control, predicted):
    i = hip.grid(1)
    if i < state.size:
        predicted[i] = 0.9 * state[i] + control[i]


@hip.jit
def correct(predicted, measured, state):
    i = hip.grid(1)
    if i < state.size:
        state[i] = predicted[i] + 0.25 * (measured[i] - predicted[i])


def main(size: int = 4096) -> None:
    steps, blocks = 50, -(-size // THREADS)
    rng = np.random.default_rng(12)
    controls, measurements = rng.normal(size=(2, steps, size))
    stream = hip.stream()
    control, measured, result = (hip.pinned_array(size, np.float64) for _ in range(3))
    d_control, d_measured, predicted, state = (hip.zeros(size) for _ in range(4))

    def step():
        d_control.copy_to_device(control, stream=stream)
        d_measured.copy_to_device(measured, stream=stream)
        predict[blocks, THREADS, stream](state, d_control, predicted)
        correct[blocks, THREADS, stream](predicted, d_measured, state)
        state.copy_to_host(result, stream=stream)

    control[:] = measured[:] = 0.0
    step()  # kernels are compiled before a graph is recorded
    with stream.capture() as graph:
        step()
    launchable = graph.instantiate()

    expected, seconds = np.zeros(size), 0.0
    for number in range(steps):
        control[:], measured[:] = controls[number], measurements[number]
        start = time.perf_counter()
        launchable.launch(stream)
        stream.synchronize()
        seconds += time.perf_counter() - start
        forecast = 0.9 * expected + controls[number]
        expected = forecast + 0.25 * (measurements[number] - forecast)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
    print(f"graphs: {steps} launches of 5 operations, {seconds / steps * 1e6:.0f} us each, NumPy's within 1e-12")


if __name__ == "__main__":
    command_line.run(main)
