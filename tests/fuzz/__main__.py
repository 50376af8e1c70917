"""Run attempts, seed by seed, and record each: `python -m fuzz --attempts 10000`; what was recorded is not run again."""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from fuzz.attempts import Ground

MEMORY = 8 << 30  # bytes that the process may take


def main():
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--attempts", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--record", type=Path, default=Path("fuzz-record.jsonl"))
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    done = [json.loads(line) for line in asked.record.read_text().splitlines()] if asked.record.exists() else []
    ended = {one["seed"] for one in done if "code" in one}
    died = {one["seed"] for one in done} - ended  # begun, but neither done nor a traceback: the process was gone
    with tempfile.TemporaryDirectory() as place, asked.record.open("a") as record:
        os.environ["CHECKREIN_STATE"] = f"{place}/state"
        ground = Ground.made(Path(place) / "ground")
        for seed in range(asked.first, asked.first + asked.attempts):
            if seed in ended | died:
                continue
            record.write(json.dumps({"seed": seed}) + "\n")
            record.flush()
            work = Path(place) / "work"
            work.mkdir()
            outcome = ground.attempt(seed, work)._asdict()
            shutil.rmtree(work)
            record.write(json.dumps(outcome) + "\n")
            record.flush()
            done.append(outcome)
            if outcome["trouble"]:
                print(outcome, flush=True)
    found = [one for one in done if "code" in one]
    troubled = [one for one in found if one["trouble"]]
    codes = sorted(Counter((one["kind"], one["code"]) for one in found).items())
    print(f"{len(found):,} attempts; {', '.join(f'{kind} {code}: {count:,}' for (kind, code), count in codes)}")
    print(f"{len(troubled)} not as documented, {len(died)} that ended the process {sorted(died)[:10]}")
    sys.exit(bool(troubled or died))


if __name__ == "__main__":
    main()
