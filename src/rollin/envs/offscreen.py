"""Which of MuJoCo's renderers can draw here without a display.

Gymnasium would try a window first, which fails with noise on a machine without a screen.
"""

import os
import subprocess
import sys

VARIABLE = "MUJOCO_GL"
BACKENDS = {  # and the Debian packages that bring what they need
    "egl": "libegl1 libgl1-mesa-dri",
    "osmesa": "libosmesa6",
}
SECONDS = 60.0  # after which a renderer is taken to hang
PROBE = "from mujoco.{0} import GLContext; c = GLContext(16, 16); c.make_current(); c.free()"


def choose_renderer() -> str:
    """Set MUJOCO_GL to EGL, else to OSMesa, unless it is set or the system has its own way.

    Returns what to do if drawing fails in the end: a display, or another renderer, may still do.
    """
    if os.environ.get(VARIABLE) or sys.platform != "linux":
        return ""
    for name in BACKENDS:
        if can_draw(name):
            os.environ[VARIABLE] = name
            return ""
    egl, osmesa = BACKENDS.values()
    return (
        " MuJoCo can draw here neither by EGL nor by OSMesa: install one of them, on Debian and "
        f"Ubuntu with apt install {egl}, or apt install {osmesa}."
    )


def can_draw(backend: str) -> bool:
    """Whether a renderer works, asked in a process of its own: a failed one stays loaded."""
    environment = {**os.environ, VARIABLE: backend}
    command = [sys.executable, "-c", PROBE.format(backend)]
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0
