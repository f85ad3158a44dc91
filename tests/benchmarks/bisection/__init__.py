"""How right, how calibrated and how frugal the bisection is, on simulated hosts."""
