"""Devices of EGL, and a context without a display.

No package is needed. EGL is the interface through which OpenGL draws without a screen, on a GPU or in software (Mesa).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from dataclasses import dataclass
from typing import Any

#: Package of Debian and Ubuntu that brings EGL with software rendering.
INSTALL_EGL = "apt-get install -y libegl1 libgl1-mesa-dri"

# Numbers of the EGL and OpenGL headers.
_PLATFORM_SURFACELESS, _PLATFORM_DEVICE = 0x31DD, 0x313F
_CUDA_DEVICE = 0x323A
_VERSION = 0x3054
_OPENGL_API, _NONE = 0x30A2, 0x3038
_RENDERABLE_TYPE, _OPENGL_BIT = 0x3040, 0x0008
_SURFACE_TYPE, _PBUFFER_BIT = 0x3033, 0x0001
_GL_RENDERER = 0x1F01
_MAX_DEVICES = 32


@dataclass(frozen=True)
class EglDevice:
    """One device of EGL.

    Attributes:
        handle: Its pointer.
        cuda_index: Number that CUDA gives it; None for software rendering and for GPUs of other makers.
    """

    handle: int
    cuda_index: int | None


def egl_devices() -> list[EglDevice]:
    """List the devices of EGL.

    habitat-sim takes the numbers of those of CUDA as `gpu_device_id`.

    Raises:
        OSError: The library EGL is not installed, or cannot list devices.
    """
    egl = _load()
    query = _extension(egl, "eglQueryDevicesEXT", ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    attribute = _extension(
        egl, "eglQueryDeviceAttribEXT", ctypes.c_uint, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
    )
    handles = (ctypes.c_void_p * _MAX_DEVICES)()
    count = ctypes.c_int()
    if not query(_MAX_DEVICES, handles, ctypes.byref(count)):
        raise OSError("EGL cannot list its devices")
    devices = []
    for handle in handles[: count.value]:
        number = ctypes.c_ssize_t()
        is_cuda = attribute(handle, _CUDA_DEVICE, ctypes.byref(number))
        devices.append(EglDevice(int(handle or 0), number.value if is_cuda else None))
    return devices


def describe_egl() -> str:
    """Make a context without a display; return what draws, such as "EGL 1.5, llvmpipe".

    A driver may end the process, so ask in a process of its own.

    Raises:
        OSError: EGL is not installed, or none of its devices gives a context.
    """
    egl = _load()
    get_display = _extension(
        egl, "eglGetPlatformDisplayEXT", ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p
    )
    displays = [get_display(_PLATFORM_SURFACELESS, None, None)]
    displays += [get_display(_PLATFORM_DEVICE, device.handle, None) for device in egl_devices()]
    for display in filter(None, displays):
        if egl.eglInitialize(display, None, None):
            version = (egl.eglQueryString(display, _VERSION) or b"").decode(errors="replace")
            renderer = _renderer(egl, display)
            if renderer is not None:
                return f"EGL {version.split()[0]}, {renderer}"
    raise OSError(f"EGL is installed, but none of its {len(displays) - 1} devices draws; try: {INSTALL_EGL}")


def _load() -> Any:
    """Load the library.

    Raises:
        OSError: It is not installed.
    """
    name = ctypes.util.find_library("EGL")
    if name is None:
        raise OSError(f"the library EGL is not installed; try: {INSTALL_EGL}")
    # Mesa prints warnings about the devices that it may not open.
    os.environ.setdefault("EGL_LOG_LEVEL", "fatal")
    egl = ctypes.CDLL(name)
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    egl.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    egl.eglInitialize.argtypes = [ctypes.c_void_p] * 3
    egl.eglQueryString.restype = ctypes.c_char_p
    egl.eglQueryString.argtypes = [ctypes.c_void_p, ctypes.c_int]
    egl.eglChooseConfig.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    egl.eglCreateContext.restype = ctypes.c_void_p
    egl.eglCreateContext.argtypes = [ctypes.c_void_p] * 4
    egl.eglMakeCurrent.argtypes = [ctypes.c_void_p] * 4
    return egl


def _extension(egl: Any, name: str, *signature: Any) -> Any:
    """Find a function that is no part of EGL's core.

    Args:
        egl: The library.
        name: Name of the function.
        *signature: Type of its result, then those of its arguments.
    """
    address = egl.eglGetProcAddress(name.encode())
    if not address:
        raise OSError(f"this EGL has no {name}")
    return ctypes.CFUNCTYPE(*signature)(address)


def _renderer(egl: Any, display: int) -> str | None:
    """Name of what draws on an initialised display; None if it gives no OpenGL context without a surface."""
    attributes = (ctypes.c_int * 5)(_SURFACE_TYPE, _PBUFFER_BIT, _RENDERABLE_TYPE, _OPENGL_BIT, _NONE)
    config, count = ctypes.c_void_p(), ctypes.c_int()
    if not egl.eglBindAPI(_OPENGL_API):
        return None
    if not egl.eglChooseConfig(display, attributes, ctypes.byref(config), 1, ctypes.byref(count)) or not count.value:
        return None
    context = egl.eglCreateContext(display, config, None, None)
    if not context or not egl.eglMakeCurrent(display, None, None, context):
        return None
    get_string = _extension(egl, "glGetString", ctypes.c_char_p, ctypes.c_uint)
    return (get_string(_GL_RENDERER) or b"unknown").decode(errors="replace")
