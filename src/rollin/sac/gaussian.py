"""The tanh-squashed Gaussian policy as vector code: draws, log-probabilities, and the way back."""

import math

import numpy as np

from rollin.sac.vector import compiled, inlined


@inlined
def exp(x):
    """eˣ to about one unit in the last place for |x| < 87, in a form that becomes vector code."""
    x = min(max(x, np.float32(-87)), np.float32(88))
    n = np.rint(x * np.float32(1.4426950408889634))
    r = x - n * np.float32(0.693359375)
    r = r - n * np.float32(-2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


@compiled
def squash(heads, action, noise, low, high, log_prob, first, count):
    """a = tanh(μ + σε) and log π(a), of columns first … first + count.

    heads: (2A, ld), means and log standard deviations; action, noise: (A, ·); log_prob: (ld,).
    With u = μ + σε and e = exp(-2|u|): tanh|u| = (1 - e)/(1 + e), and
    log(1 - tanh²u) = 2 (log 2 - |u| - log(1 + e)).
    """
    size = action.shape[0]
    one, two = np.float32(1), np.float32(2)
    constant = np.float32(-0.5 * math.log(2 * math.pi) - 2 * math.log(2))
    columns = log_prob[first : first + count]
    columns[:] = np.float32(size) * constant
    for j in range(size):
        mean, raw = heads[j, first:], heads[size + j, first:]
        draw, out = noise[j, first:], action[j, first:]
        for b in range(count):
            log_std = min(max(raw[b], low), high)
            u = mean[b] + exp(log_std) * draw[b]
            e = exp(-two * abs(u))
            tanh = (one - e) / (one + e)
            out[b] = tanh if u > 0 else -tanh
            columns[b] += two * abs(u) - np.float32(0.5) * draw[b] * draw[b] - log_std
            columns[b] += two * log1p(e)


@inlined
def log1p(e):
    """log(1 + e) for e in [0, 1] by atanh's series: log(1 + e) = 2 atanh(e / (2 + e))."""
    z = e / (np.float32(2) + e)  # in [0, 1/3]
    s = z * z
    p = np.float32(1 / 13)
    p = p * s + np.float32(1 / 11)
    p = p * s + np.float32(1 / 9)
    p = p * s + np.float32(1 / 7)
    p = p * s + np.float32(0.2)
    p = p * s + np.float32(1 / 3)
    p = p * s + np.float32(1)
    return np.float32(2) * z * p


@compiled
def squash_backward(heads, action, noise, low, high, slope, delta, scale, first, count):
    """∂/∂heads of mean(τ log π - Q), where slope = ∂Q/∂a and scale = (1/batch, τ/batch).

    ∂log π/∂u = 2a, ∂a/∂u = 1 - a²; log σ also enters through u = μ + σε, and not where clipped.
    """
    size = action.shape[0]
    one, two = np.float32(1), np.float32(2)
    share, entropy_share = scale
    for j in range(size):
        raw, draw, a = heads[size + j, first:], noise[j, first:], action[j, first:]
        dq, d_mean, d_std = slope[j, first:], delta[j, first:], delta[size + j, first:]
        for b in range(count):
            log_std = min(max(raw[b], low), high)
            du = entropy_share * two * a[b] - share * dq[b] * (one - a[b] * a[b])
            d_mean[b] = du
            inside = raw[b] > low and raw[b] < high
            slope_std = du * exp(log_std) * draw[b] - entropy_share
            d_std[b] = slope_std if inside else np.float32(0)
