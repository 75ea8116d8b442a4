"""Asks Linux for the tile registers of AMX, which a process may not use by default (Documentation/arch/x86/xstate.rst)."""

import ctypes
import platform


def request_tiles():
    """Returns whether this process may run code that uses the tile registers."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    return ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0
