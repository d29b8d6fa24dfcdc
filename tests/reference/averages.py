"""Means of one-dimensional kernels over pairs of intervals, in 80-digit arithmetic.

With K1 and K2 the first and second antiderivatives of the profile k(t), odd and even,

    mean over [a, b] x [c, d] = (K2(b-c) - K2(a-c) - K2(b-d) + K2(a-d)) / ((b-a) (d-c)),

which loses digits when widths are small; there are enough of them here.
"""

from mpmath import mp, mpf

DIGITS = 80
MATERN = {"Matern12": (1, (1,)), "Matern32": (3, (1, 1)), "Matern52": (5, (1, 1, 3))}
"""n = 2 nu, and the divisors of the powers of t in the polynomial of the profile."""


def profile(name, lengthscale, t):
    """Return k(t)."""
    if name == "RBF":
        return mp.exp(-((t / lengthscale) ** 2) / 2)
    rate, coefficients = _matern(name, lengthscale)
    s = rate * abs(t)
    return mp.exp(-s) * sum(p * s**j for j, p in enumerate(coefficients))


def first_antiderivative(name, lengthscale, t):
    """Return the integral of k from 0 to t."""
    if name == "RBF":
        return lengthscale * mp.sqrt(mp.pi / 2) * mp.erf(t / lengthscale / mp.sqrt(2))
    rate, coefficients = _matern(name, lengthscale)
    tails = _incomplete(rate * abs(t), len(coefficients))
    return mp.sign(t) / rate * sum(p * g for p, g in zip(coefficients, tails, strict=True))


def second_antiderivative(name, lengthscale, t):
    """Return the integral of the first antiderivative from 0 to t."""
    if name == "RBF":
        bump = lengthscale**2 * (profile(name, lengthscale, t) - 1)
        return t * first_antiderivative(name, lengthscale, t) + bump
    rate, coefficients = _matern(name, lengthscale)
    s = rate * abs(t)
    tails = _incomplete(s, len(coefficients))
    # The integral of j! (1 - e^-s sum_i<=j s^i / i!) is j! (s - sum_i<=j tail_i / i!).
    total = mpf(0)
    for j, p in enumerate(coefficients):
        inside = s - sum(tails[i] / mp.factorial(i) for i in range(j + 1))
        total += p * mp.factorial(j) * inside
    return total / rate**2


def interval_mean(name, lengthscale, a, b, c, d):
    """Return the mean of k(x - z) over x in [a, b] and z in [c, d]; zero widths are points."""
    with mp.workdps(DIGITS):
        scale, a, b, c, d = (mpf(v) for v in (lengthscale, a, b, c, d))
        if a == b and c == d:
            return profile(name, scale, a - c)
        if a == b or c == d:
            z, (low, high) = (a, (c, d)) if a == b else (c, (a, b))
            ends = [first_antiderivative(name, scale, t) for t in (high - z, low - z)]
            return (ends[0] - ends[1]) / (high - low)
        corners = (
            second_antiderivative(name, scale, b - c),
            -second_antiderivative(name, scale, a - c),
            -second_antiderivative(name, scale, b - d),
            second_antiderivative(name, scale, a - d),
        )
        return sum(corners) / ((b - a) * (d - c))


def slopes(name, lengthscale, a, b, c, d):
    """Return the derivatives of `interval_mean` in (lengthscale, a, b, c, d).

    Central differences with a step of 1e-20: their error is far below double precision wherever
    the mean is once differentiable, kinks of higher order included.
    """
    with mp.workdps(DIGITS):
        at, step, found = [mpf(v) for v in (lengthscale, a, b, c, d)], mpf(10) ** -20, []
        for i in range(5):
            up, down = list(at), list(at)
            up[i] += step
            down[i] -= step
            change = interval_mean(name, *up) - interval_mean(name, *down)
            found.append(float(change / (2 * step)))
        return found


def _matern(name, lengthscale):
    n, divisors = MATERN[name]
    return mp.sqrt(n) / lengthscale, [1 / mpf(d) for d in divisors]


def _incomplete(s, count):
    """Return the integrals of u^j e^-u from 0 to s, j = 0, 1, ..."""
    decay, powers, found = mp.exp(-s), mpf(0), []
    for j in range(count):
        powers += s**j / mp.factorial(j)
        found.append(mp.factorial(j) * (1 - decay * powers))
    return found
