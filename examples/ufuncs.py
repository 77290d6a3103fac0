"""Functions of single elements and of rows that broadcast as NumPy's do: `vectorize` and `guvectorize`."""

import math

import numpy as np
from gallery import command_line
from numba import guvectorize, hip, vectorize

SMALL = 40


@vectorize(["float64(float64, float64, float64, float64, float64)"], target="hip")
def call_price(stock, strike, years, rate, volatility):
    """What an option to buy is worth (Black and Scholes)."""
    spread = volatility * math.sqrt(years)
    d1 = (math.log(stock / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    normal1, normal2 = 0.5 * math.erfc(-d1 / math.sqrt(2.0)), 0.5 * math.erfc(-d2 / math.sqrt(2.0))
    return stock * normal1 - strike * math.exp(-rate * years) * normal2


@guvectorize(["void(float64[:], int64[:], float64[:])"], "(n),()->(n)", target="hip")
def moving_mean(values, width, means):
    """The mean of each value and those before it, *width* in all."""
    total = 0.0
    for i in range(values.size):
        total += values[i]
        if i >= width[0]:
            total -= values[i - width[0]]
        means[i] = total / min(i + 1, width[0])


def main(size: int = 500) -> None:
    rng = np.random.default_rng(11)
    strikes, years = np.linspace(80, 120, size), np.linspace(0.1, 2, size)[:, None]
    prices = call_price(100.0, hip.to_device(strikes), hip.to_device(years), 0.03, 0.25)  # stays on the device
    smooth = moving_mean(prices, 7)

    host = prices.copy_to_host()
    intrinsic = np.maximum(100.0 - strikes * np.exp(-0.03 * years), 0)
    assert (host >= intrinsic - 1e-12).all(), "at least what it is worth at once"
    assert (host < 100.0).all(), "less than the stock"
    assert (np.diff(host, axis=0) > 0).all(), "time is worth something"
    sums = np.cumsum(np.pad(host, [(0, 0), (7, 0)]), axis=1)
    expected = (sums[:, 7:] - sums[:, :-7]) / np.minimum(np.arange(size) + 1, 7)
    np.testing.assert_allclose(smooth.copy_to_host(), expected, rtol=1e-9, atol=1e-9)
    draws = rng.normal(size=400_000)
    ends = 100.0 * np.exp((0.03 - 0.5 * 0.25**2) * years[0] + 0.25 * np.sqrt(years[0]) * draws)
    by_chance = np.exp(-0.03 * years[0]) * np.maximum(ends - strikes[0], 0).mean()
    assert abs(by_chance / host[0, 0] - 1) < 0.01, f"{by_chance} by chance, {host[0, 0]} by the formula"
    print(f"ufuncs: {size} x {size} prices of options and their moving means, NumPy's within 1e-9")


if __name__ == "__main__":
    command_line.run(main)
