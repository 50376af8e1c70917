"""Kill runs at random moments and take them up again: `python -m fuzz.kills --kills 1000`.

A chain is one run, killed a few times and then left to end: its folder must equal that of an unbroken run, byte by byte.
What was recorded is not run again.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

import checkrein.__main__ as command_line
from checkrein.base.errors import CheckreinError
from checkrein.runs import players
from checkrein.runs.folder import RunFolder

HELD_OUT = 'certificate = "holdout"\nholdout = 0.5\nmargin = "none"\nmax_rounds = 4\n'
KINDS = {
    "folds": '[data]\nstate = ["severity"]\n[learn]\nfolds = 2\n',
    "features": '[data]\nstate = ["pain"]\n[learn]\nfolds = 2\nfunctions = "features"\n',
    "tabular": f'[data]\nstate = ["severity"]\n[learn]\n{HELD_OUT}',
    "linear": f'[data]\nstate = ["pain"]\n[learn]\n{HELD_OUT}functions = "linear"\n',
    "trees": f'[data]\nstate = ["pain"]\n[learn]\n{HELD_OUT}functions = "trees"\nn_trees = 2\n',
    "neural": f'[data]\nstate = ["pain"]\n[learn]\n{HELD_OUT}functions = "neural"\nhidden = [2]\n',
}
COMMON = {
    "[data]\n": '[data]\npath = "log.csv"\nepisode = "patient"\nstep = "hour"\naction = "drug"\nterminal = "ended"\n',
    "[learn]\n": '[objective]\nminimize = "death"\n[[constraint]]\nname = "dose"\nat_most = "110% of behavior"\n'
    "[learn]\ndiscount = 0.5\n",
}
EPISODES, STEPS = 60, 3
FEW_STEPS = 3  # of gradient descent
KILLS = 8  # of a chain, at most
SOON = 0.03  # seconds after an event of the disk within which a kill comes, if not right before it
TOLD = {130: signal.SIGINT, 143: signal.SIGTERM}
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}
FINISHED = 300  # seconds after which a run is held for stuck


@dataclass(frozen=True)
class Blow:
    """When a run is told to end, and how: before its so-many-th event of the disk, or some time after."""

    event: int
    delay: float  # 0: right before it
    signals: tuple[int, ...] = (signal.SIGKILL,)

    @classmethod
    def drawn(cls, rng, events):
        delay = 0.0 if rng.random() < 0.5 else float(rng.uniform(0, SOON))
        kinds = ((signal.SIGKILL,), (signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT))
        return cls(int(rng.integers(1, events + 1)), delay, kinds[int(rng.choice(4, p=[0.85, 0.05, 0.05, 0.05]))])


def write_log(folder, learn):
    rng = np.random.default_rng(0)
    lines = ["patient,hour,severity,pain,drug,death,dose,ended"]
    for row in range(EPISODES * STEPS):
        pain, drug, last = rng.normal(), rng.integers(2), row % STEPS == STEPS - 1
        death = int(rng.random() < 0.3 + 0.2 * (pain > 0) - 0.2 * drug)
        severity = "high" if pain > 0 else "low"
        lines.append(f"{row // STEPS},{row % STEPS},{severity},{pain:.3f},{drug},{death},{drug * 0.5},{int(last)}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    for old, new in COMMON.items():
        learn = learn.replace(old, new)
    (folder / "problem.toml").write_text(learn)


def start(work, *, resume, blow=None, pipe=None, modules=None):
    """Fork a run in a folder; return its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background of a shell
        os.chdir(work)
        players.STEPS = FEW_STEPS
        os.environ["CHECKREIN_STATE"] = "state"
        output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _count(blow, pipe)
        sys.argv = ["checkrein", "fit", "problem.toml", "--out", "run", *(["--resume"] if resume else [])]
        command_line.main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException as reason:  # no command may let one through
        os.write(2, f"Traceback: {reason!r}\n".encode())
    finally:
        if modules is not None:
            modules.write_text("\n".join([str(_seen[0]), *sys.modules]))
        os._exit(code)


_seen = [0]


def _count(blow, pipe):
    """Count the events of the disk in the run's folder; at the one that is meant, end, or tell whoever will end us."""

    here = f"{Path.cwd()}/"  # temporary files have whole paths

    def hook(event, arguments):
        if event not in EVENTS or not str(arguments[0]).removeprefix(here).startswith(
            ("run", "checkrein-looks", "state")
        ):
            return
        _seen[0] += 1
        if blow is not None and _seen[0] == blow.event:
            if blow.delay:
                os.write(pipe, b".")
            else:
                for number in blow.signals:
                    os.kill(os.getpid(), number)

    sys.addaudithook(hook)


def ended(child):
    """Wait for a process, and return its exit code, negative for a signal."""
    until = time.monotonic() + FINISHED
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "stuck"


def strike(work, blow, *, resume):
    """Start a run, end it as planned, and return its exit code."""
    reader, writer = os.pipe()
    child = start(work, resume=resume, blow=blow, pipe=writer)
    os.close(writer)
    if blow.delay and os.read(reader, 1):
        time.sleep(blow.delay)
        for number in blow.signals:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
            time.sleep(0.001)
    os.close(reader)
    return ended(child)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@dataclass(frozen=True)
class Ground:
    """An unbroken run of a kind, and how many events of the disk it took."""

    kind: str
    folder: Path
    code: int
    events: int

    @classmethod
    def made(cls, kind, folder):
        folder.mkdir(parents=True)
        write_log(folder, KINDS[kind])
        modules = folder / "modules.txt"
        code = ended(start(folder, resume=False, modules=modules))
        said = (folder / "output.txt").read_text()
        assert code in (0, 4, 5, 6), f"{kind} ended with {code}: {said}"
        events, *names = modules.read_text().splitlines()
        for name in names:  # once, so that every run that is forked need not
            with contextlib.suppress(ImportError, AttributeError):
                import_module(name)
        return cls(kind, folder, code, int(events))

    def chain(self, seed, work, most):
        """Kill one run again and again, let it end, and say what is not as it should be."""
        rng, kills, trouble = np.random.default_rng(seed), [], []
        work.mkdir()
        for name in ("log.csv", "problem.toml"):
            shutil.copyfile(self.folder / name, work / name)
        for number in range(min(KILLS, most)):
            blow = Blow.drawn(rng, self.events)
            code = strike(work, blow, resume=number > 0)
            trouble += self._odd(work, code, blow)
            if code in (0, 4, 5, 6):
                break
            kills.append({"signals": list(blow.signals), "event": blow.event, "partial": partial(work / "run")})
        code = ended(start(work, resume=True))
        if code != self.code:
            trouble.append(f"resumed, it ended with {code}: {(work / 'output.txt').read_text()[-300:]}")
        there, wanted = contents(work / "run"), contents(self.folder / "run")
        differ = sorted(name for name in there | wanted if there.get(name) != wanted.get(name))
        if differ:
            trouble.append(f"not as the unbroken run: {differ}")
        return {"seed": seed, "kind": self.kind, "kills": kills, "trouble": trouble}

    def _odd(self, work, code, blow):
        """Say what a run that was told to end did otherwise than documented."""
        run, said = work / "run", (work / "output.txt").read_text()
        if code not in (-signal.SIGKILL, *TOLD, self.code):
            return [f"ended with {code} at {blow}: {said[-300:]}"]
        if "Traceback" in said or (code in TOLD and said.count("interrupted") != 1):
            return [f"said at {blow}: {said[-300:]}"]
        try:
            RunFolder.opened(run)
        except CheckreinError:
            return []
        there, wanted = contents(run), contents(self.folder / "run")
        differ = sorted(name for name in there | wanted if there.get(name) != wanted.get(name))
        differ = [name for name in differ if not Path(name).name.startswith(".")]  # the lock, and what was half written
        return [f"half a run was taken for a finished one at {blow}: {differ}"] if differ else []


def partial(run):
    """Say whether a run was begun in a folder, and is not finished."""
    files = [path for path in run.rglob("*") if path.is_file() and path.name != ".lock"] if run.exists() else []
    try:
        RunFolder.opened(run)
    except CheckreinError:
        return bool(files)
    return False


def main():
    parser = argparse.ArgumentParser(prog="fuzz.kills")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--record", type=Path, default=Path("kills-record.jsonl"))
    asked = parser.parse_args()
    done = [json.loads(line) for line in asked.record.read_text().splitlines()] if asked.record.exists() else []
    kinds = asked.kinds.split(",")
    with tempfile.TemporaryDirectory() as place, asked.record.open("a") as record:
        grounds = {}
        seed = 1 + max((one["seed"] for one in done), default=-1)
        while (left := asked.kills - sum(len(one["kills"]) for one in done)) > 0:
            kind = kinds[seed % len(kinds)]
            if kind not in grounds:
                grounds[kind] = Ground.made(kind, Path(place) / kind)
            work = Path(place) / "work"
            outcome = grounds[kind].chain(seed, work, left)
            shutil.rmtree(work)
            record.write(json.dumps(outcome) + "\n")
            record.flush()
            done.append(outcome)
            seed += 1
            if outcome["trouble"]:
                print(outcome, flush=True)
    tell(done)
    sys.exit(any(one["trouble"] for one in done))


def tell(done):
    """Print how often what was killed, and how often that hit a folder with half a run in it."""
    kills = [(one["kind"], kill) for one in done for kill in one["kills"]]
    for kind in sorted({kind for kind, _ in kills}):
        mine = [kill for one, kill in kills if one == kind]
        signals = Counter("+".join(signal.Signals(s).name for s in kill["signals"]) for kill in mine)
        print(f"{kind}: {len(mine)} kills, {sum(kill['partial'] for kill in mine)} of half a run; {dict(signals)}")
    partials, hard = sum(kill["partial"] for _, kill in kills), sum(kill["signals"] == [9] for _, kill in kills)
    print(f"{len(kills)} kills in {len(done)} runs, {hard} by SIGKILL, {partials} of half a run")
    print(f"{sum(bool(one['trouble']) for one in done)} runs with trouble")


if __name__ == "__main__":
    main()
