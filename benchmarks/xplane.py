"""Times our reading of a trace of about 90 MB against XProf's and xprof-rs's, where they are installed.

    python benchmarks/xplane.py                    # traces a jitted loop on the CPU, about 1.5 million events
    python benchmarks/xplane.py --trace FILE       # takes a trace that is there
    python benchmarks/xplane.py --tools DIR        # where xprof and xprof-rs are, if not beside this Python

Every run is a process of its own, and rounds alternate between the tools; medians of wall and processor time, and the
largest resident set, the file's mapped pages included. A cold run has no cache of the trace; the native code that is
compiled once a machine is there. Ends with 1 when our cold command takes a second of processor time or more, more than
a tenth of what XProf takes to add up the same events, or 600 MB.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS, LEAST_RATIO, MOST_BYTES = 1, 10, 600e6

TRACED = """
import sys, jax, jax.numpy as jnp

@jax.jit
def step(x):
    def body(_, c):
        for _ in range(12):
            c = jnp.sort(jnp.sin(c) * 1.0001 + jnp.sum(c) * 1e-9)
        return c
    return jax.lax.fori_loop(0, 400, body, x)

x = jnp.ones(64)
step(x).block_until_ready()
options = jax.profiler.ProfileOptions()
options.python_tracer_level, options.host_tracer_level = 0, 3
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for number in range(38):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(x).block_until_ready()
"""

READ = """
import mmap, sys, time
from hlotrace.parsers.xplane import read_space

start = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
space, events, stats = read_space(data, place="trace"), 0, 0
for plane in space.planes:
    plane.event_metadata, plane.stats
    for line in plane.lines:
        read = plane.read(line, all_stats=True)
        events, stats = events + len(read), stats + len(read.stats)
print(time.perf_counter() - start[0], time.process_time() - start[1], events, stats)
"""

WHAT = {
    "read": "ours: all events and stats to columns, the whole process",
    "inside": "… in that process, without Python's start and imports",
    "cold": "ours: `hlotrace show X.xplane.pb profile`, cold",
    "again": "ours: the same again",
    "events": "ours: `hlotrace.load(X)['events']`, cold",
    "xprof events": "XProf: `create_events_db`",
    "xprof aggregate": "XProf: `aggregate_xplane_events`",
    "xprof-rs aggregate": "xprof-rs: `aggregate_xplane_events`",
}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--trace", type=Path, help="an .xplane.pb; made afresh when left out")
    options.add_argument("--tools", type=Path, default=Path(sys.executable).parent)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = chosen.trace or made(Path(folder) / "logs")
        size = trace.stat().st_size
        taken, inside = rounds(trace, Path(folder), chosen.tools, chosen.rounds)
    events, stats = (int(number) for number in inside[0][2:])
    print(f"{trace.name}: {size / 1e6:.1f} MB, {events:,} events, {stats:,} stats\n")
    print("| | wall s | processor s | largest resident set MB |\n| --- | ---: | ---: | ---: |")
    taken["inside"] = [(*numbers[:2], 0) for numbers in inside]
    middle = {
        name: [statistics.median(column) for column in zip(*taken[name], strict=True)] for name in WHAT if name in taken
    }
    for name, (wall, processor, memory) in middle.items():
        print(f"| {WHAT[name]} | {wall:.2f} | {processor:.2f} | {f'{memory / 1e6:.0f}' if memory else ''} |")
    ours = middle["cold"]
    theirs = [values[1] for name, values in middle.items() if name == "xprof aggregate"]
    too_slow = ours[1] >= MOST_SECONDS or (theirs and min(theirs) < LEAST_RATIO * ours[1])
    sys.exit(bool(too_slow or ours[2] >= MOST_BYTES))


def made(logs):
    """A trace of a jitted loop on this CPU."""
    print("tracing a loop on the CPU …", file=sys.stderr)
    subprocess.run([sys.executable, "-c", TRACED, str(logs)], check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    return next(logs.rglob("*.xplane.pb"))


def rounds(trace, folder, tools, count):
    """Wall seconds, processor seconds and bytes of each run of each tool, and what the reading process measured."""
    taken, inside = {}, []
    warm(trace, folder)
    for number in range(count):
        place = folder / str(number)
        for name, command, environment in commands(trace, place, tools):
            *used, said = timed(command, environment)
            taken.setdefault(name, []).append(used)
            if name == "read":
                inside.append([float(word) for word in said.split()])
    return taken, inside


def warm(trace, folder):
    """Compile what is compiled once a machine, and have the file in memory."""
    for name, command, environment in commands(trace, folder / "warm", None):
        if name in ("read", "cold", "events"):
            timed(command, environment)


def commands(trace, place, tools):
    """What is run in a round: name, command, environment. XProf gets a copy, and a home, to leave its caches in."""
    caches = [{**os.environ, "HLOTRACE_CACHE_DIR": str(place / name)} for name in ("profile", "events")]
    show = [sys.executable, "-m", "hlotrace", "show", str(trace), "profile"]
    yield "read", [sys.executable, "-c", READ, str(trace)], os.environ
    yield "cold", show, caches[0]
    yield "again", show, caches[0]
    yield "events", [sys.executable, "-c", f"import hlotrace; hlotrace.load({str(trace)!r})['events']"], caches[1]
    for tool in ("xprof", "xprof-rs") if tools is not None else ():
        executable = shutil.which(tool, path=str(tools))
        for what in ("create_events_db", "aggregate_xplane_events") if executable else ():
            if tool == "xprof-rs" and what == "create_events_db":
                continue
            run = place / f"{tool}-{what}" / "plugins" / "profile" / "run"
            run.mkdir(parents=True)
            copy = shutil.copy(trace, run / "host.xplane.pb")
            home = {**os.environ, "HOME": str(place), "XDG_CACHE_HOME": str(place / "xdg")}
            path = str(run if tool == "xprof" and what.startswith("agg") else copy)
            yield (
                f"{tool} {'events' if what.startswith('create') else 'aggregate'}",
                [executable, what, path, "--bypass_cache=True"],
                home,
            )
            shutil.rmtree(run)


def timed(command, environment):
    """Wall seconds, processor seconds, largest resident set in bytes, and what it printed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, errors):
            stream.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(command[:3])} failed: {errors.read()[-2000:]}")
        return wall, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss, re.sub(r"\n+$", "", out.read())


if __name__ == "__main__":
    main()
