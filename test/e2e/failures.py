"""What happens when a process of a job dies or sleeps.

    failures.py kill WORK_FOLDER [--moments 5] [--seed S]
    failures.py pause WORK_FOLDER [--seconds 30]
    failures.py terminate WORK_FOLDER

kill: at seeded moments one worker or supervisor gets SIGKILL. The job ends with
an error within 15 s that says who died; nothing is left running; the last
checkpoint verifies. pause: SIGSTOP of a worker delays the job and changes no
number. terminate: SIGTERM to a supervisor saves at a step boundary, exit 0.
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import re
import shutil
import signal
import sys
import time

import plan_cases
import plans
from harness import Checks, ToolFailed, read_losses, tool
from processes import Job

DEADLINE_S = 15
NAMES_THE_DEAD = re.compile(r"(rank|worker|device|node|supervisor)\b.*\b(died|killed|signal|SIGKILL|lost|exited)", re.I)


class Scene:
    """A model compiled for two replicas on two nodes, and its data."""

    def __init__(self, work: str) -> None:
        self.model = plan_cases.Model("gpt", work, plans.GLOBAL_BATCH, 1)
        replicas = plans.PLANS["replicas-unlike-depths"]
        paths = {end: os.path.join(work, "job." + end) for end in ("plan.json", "cluster.yaml", "out")}
        plans.write_plan(paths["plan.json"], plans.plan_json(replicas, self.model.units, "adamw"))
        with open(paths["cluster.yaml"], "w") as file:
            file.write(plans.cluster_yaml(plans.device_count(replicas)))
        tool(
            "autohet-compile", self.model.onnx, "--cluster", paths["cluster.yaml"], "--plan", paths["plan.json"],
            f"--global-batch={plans.GLOBAL_BATCH}", "--optimizer=adamw", "-o", paths["out"],
        )  # fmt: skip
        self.work, self.program = work, paths["out"]

    def job(self, name: str, steps: int, *options: str) -> Job:
        prefix = os.path.join(self.work, name)
        shutil.rmtree(prefix + ".checkpoints", ignore_errors=True)
        for stale in glob.glob(prefix + ".loss.jsonl"):
            os.remove(stale)
        return Job(
            prefix + ".log", "autohet-run", self.program, "--steps", str(steps),
            "--inputs", os.path.join(self.model.folder, "inputs.safetensors"),
            "--labels", os.path.join(self.model.folder, "labels.safetensors"),
            "--save-loss", prefix + ".loss.jsonl", "--checkpoint", prefix + ".checkpoints", *options,
        )  # fmt: skip

    def losses(self, name: str):
        path = os.path.join(self.work, name + ".loss.jsonl")
        return read_losses(path) if os.path.exists(path) else []


def kill(scene: Scene, checks: Checks, moments: int, seed: int) -> None:
    draw = random.Random(seed)
    for moment in range(moments):
        name = f"kill{moment}"
        job = scene.job(name, 1_000_000, "--checkpoint-every", "5")
        try:
            # The first moment is the start itself; later ones are within training.
            job.wait_for(lambda: len(job.workers()) >= 4, 60, "four workers run")
            if moment:
                job.wait_for(lambda: len(scene.losses(name)) >= 7, 120, "seven steps are done")
                time.sleep(draw.uniform(0, 2))
            kind = draw.choice(["worker", "supervisor"])
            victim = draw.choice(job.workers() if kind == "worker" else job.supervisors())
            print(f"moment {moment}: kill -9 {kind} {victim[0]}", flush=True)
            os.kill(victim[0], signal.SIGKILL)
            begin = time.monotonic()
            status = job.end(DEADLINE_S)
            took = time.monotonic() - begin
            checks.equal(f"{name}: ended within {DEADLINE_S} s", status is not None, True)
            checks.equal(f"{name}: ended with an error", status not in (None, 0), True)
            checks.equal(f"{name}: says who died", bool(NAMES_THE_DEAD.search(job.output())), True)
            checks.equal(f"{name}: processes left", job.left(), [])
            print(f"  exit {status} after {took:.1f} s", flush=True)
            if moment:
                tool("autohet-checkpoint", "verify", os.path.join(scene.work, name + ".checkpoints"))
                checks.count += 1
        except AssertionError as error:
            checks.failures.append(f"{name}: {error}")
        finally:
            job.clean_up()
    if checks.failures:
        print(job.output()[-4000:])


def pause(scene: Scene, checks: Checks, seconds: float) -> None:
    reference = scene.job("undisturbed", 60)
    checks.equal("undisturbed run", reference.end(300), 0)
    job = scene.job("paused", 60)
    try:
        job.wait_for(lambda: len(scene.losses("paused")) >= 3, 120, "three steps are done")
        pid = job.workers()[1][0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        checks.equal("still waiting", job.process.poll(), None)
        os.kill(pid, signal.SIGCONT)
        checks.equal("exit status", job.end(300), 0)
        checks.equal("losses, bit for bit", scene.losses("paused"), scene.losses("undisturbed"))
    except AssertionError as error:
        checks.failures.append(str(error))
    finally:
        job.clean_up()
        reference.clean_up()


def terminate(scene: Scene, checks: Checks) -> None:
    job = scene.job("terminated", 1_000_000)
    try:
        job.wait_for(lambda: len(scene.losses("terminated")) >= 3, 120, "three steps are done")
        os.kill(job.supervisors()[-1][0], signal.SIGTERM)
        checks.equal("exit status", job.end(60), 0)
        checks.equal("processes left", job.left(), [])
        listed = tool("autohet-checkpoint", "list", os.path.join(scene.work, "terminated.checkpoints"))
        done = len(scene.losses("terminated"))
        checks.equal(f"the checkpoint is of step {done}", bool(re.search(rf"\b{done}\b", listed)), True)
    except AssertionError as error:
        checks.failures.append(str(error))
    finally:
        job.clean_up()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("kill", "pause", "terminate"))
    parser.add_argument("work")
    parser.add_argument("--moments", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    checks = Checks()
    try:
        scene = Scene(options.work)
        if options.what == "kill":
            kill(scene, checks, options.moments, options.seed)
        elif options.what == "pause":
            pause(scene, checks, options.seconds)
        else:
            terminate(scene, checks)
    except ToolFailed as failure:
        print("FAIL:", failure)
        sys.exit(1)
    checks.finish()


if __name__ == "__main__":
    main()
