"""Runs peers in turns, each in its own process, so that other load on the machine affects all of
them."""

import json
import statistics
import subprocess
import sys
import time


# Threads of JAX and PyTorch go on to spin after a run, up to 200 ms (OpenMP's default). So many seconds later they do not
# take time from the next peer, whose own threads sleep then: a run that is not timed wakes them.
PAUSE = 0.3


def serve(runs):
    """Runs in a peer's process: times the function in `runs` of each name that it reads."""
    runs = dict(runs)
    print("ready", flush=True)
    for line in sys.stdin:
        run = runs[line.strip()]
        run()
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


def take_turns(commands, names, rounds):
    """Starts a process that serves for each of {peer: command}, and yields (name, peer, wall, cpu),
    the medians of `rounds` runs in seconds."""
    processes = {peer: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for peer, command in commands.items()}
    for peer, process in processes.items():
        if process.stdout.readline() != "ready\n":
            sys.exit(f"expected {peer} to be ready")
    times = {}
    for _ in range(rounds):
        for name in names:
            for peer, process in processes.items():
                time.sleep(PAUSE)
                process.stdin.write(f"{name}\n")
                process.stdin.flush()
                times.setdefault((name, peer), []).append(json.loads(process.stdout.readline()))
    for process in processes.values():
        process.stdin.close()
        process.wait()
    for (name, peer), both in times.items():
        yield name, peer, *(statistics.median(column) for column in zip(*both))
