# %% [markdown]
# # Streams, events and graphs
#
# Work on a stream runs in order; work on different streams may run at the same time. Copies from pinned memory do not
# hold up the host.

# %%
import numpy as np
from numba import hip


@hip.jit
def scale(values, factor):
    for i in range(hip.grid(1), values.size, hip.gridsize(1)):
        values[i] *= factor


parts = [hip.pinned_array(100_000, np.float64) for _ in range(4)]
for number, part in enumerate(parts):
    part[:] = number

streams = [hip.stream() for _ in parts]
for part, stream in zip(parts, streams, strict=True):
    on_device = hip.to_device(part, stream=stream)
    scale[64, 128, stream](on_device, 10.0)
    on_device.copy_to_host(part, stream=stream)
for stream in streams:
    stream.synchronize()
[float(part[0]) for part in parts]

# %% [markdown]
# Events order the work of different streams, and measure time:

# %%
begin, end = hip.event(), hip.event()
values = hip.to_device(np.ones(1_000_000))
begin.record(streams[0])
scale[64, 128, streams[0]](values, 2.0)
end.record(streams[0])
end.synchronize()
assert hip.event_elapsed_time(begin, end) > 0  # milliseconds

# %% [markdown]
# What is put on a stream again and again can be recorded once and launched as a unit:

# %%
stream = streams[0]
with stream.capture() as graph:
    for _ in range(5):
        scale[64, 128, stream](values, 2.0)
launchable = graph.instantiate()
launchable.launch(stream)
stream.synchronize()
float(values[0])
