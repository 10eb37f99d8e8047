"""What happens when a process of a job dies or sleeps.

    failures.py kill WORK_FOLDER [--rounds 1] [--seed S]
    failures.py pause WORK_FOLDER [--seconds 30]
    failures.py terminate WORK_FOLDER

kill: at five moments of a job's life (rendezvous, first step, between steps,
inside a save, near the end) one worker or supervisor, drawn by the seed, gets
SIGKILL, and once two workers at the same time. The job ends with an error within 15 s that says who died; nothing is
left running, nor in shared memory once another job has begun; the last checkpoint
verifies. pause: SIGSTOP of a worker delays
the job and changes no number. terminate: SIGTERM to a supervisor saves at a step
boundary, exit 0.
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
from typing import Iterable, List, Set

import plan_cases
import plans
from harness import Checks, ToolFailed, read_losses, tool
from processes import Job, descendants

DEADLINE_S = 15


class Scene:
    """A model compiled for two replicas on two nodes, and its data."""

    def __init__(self, work: str) -> None:
        self.model = plan_cases.Model("gpt", work, plans.GLOBAL_BATCH, 1)
        replicas = plans.PLANS["replicas-unlike-depths"]
        plan = plans.plan_json(replicas, self.model.units, "adamw")
        self.program = self.model.compile_plan(plan, plans.cluster_yaml(plans.device_count(replicas)), "job")
        self.work = work

    def path(self, name: str, end: str) -> str:
        return os.path.join(self.work, name + end)

    def command(self, name: str, steps: int) -> List[str]:
        return [
            "autohet-run", self.program, "--steps", str(steps),
            "--inputs", os.path.join(self.model.folder, "inputs.safetensors"),
            "--labels", os.path.join(self.model.folder, "labels.safetensors"),
            "--save-loss", self.path(name, ".loss.jsonl"), "--checkpoint", self.path(name, ".checkpoints"),
        ]  # fmt: skip

    def job(self, name: str, steps: int, *options: str) -> Job:
        shutil.rmtree(self.path(name, ".checkpoints"), ignore_errors=True)
        if os.path.exists(self.path(name, ".loss.jsonl")):
            os.remove(self.path(name, ".loss.jsonl"))
        return Job(name, self.path(name, ".log"), *self.command(name, steps), *options)

    def has_begun(self, job: Job) -> bool:
        """Whether the first rank has met the others and read its weights."""
        return os.path.exists(self.path(job.name, ".loss.jsonl"))

    def losses(self, name: str) -> List[float]:
        path = self.path(name, ".loss.jsonl")
        return read_losses(path) if os.path.exists(path) else []

    def unfinished_saves(self, name: str) -> List[str]:
        folders = glob.glob(os.path.join(self.path(name, ".checkpoints"), "step-*"))
        return [os.path.basename(f) for f in folders if not os.path.exists(os.path.join(f, "manifest.json"))]


def shared_memory(supervisors: Iterable[int]) -> List[str]:
    """What is left of these processes' jobs in /dev/shm."""
    return [folder for pid in supervisors for folder in glob.glob(f"/dev/shm/autohet-*-{pid}")]


# ===-- Moments ------------------------------------------------------------===#
#
# Each function returns with the job at its moment. Where a moment is short, a
# worker is stopped to hold the job there: nobody can go on without it.


class Missed(Exception):
    """The job had gone on already; another one may be met."""


def hold(job: Job, worker: int, is_there, what: str) -> None:
    """Stops a worker as soon as the moment has come, and looks if it still is."""
    job.wait_for(is_there, 120, what, every_s=0.001)
    os.kill(job.workers()[worker][0], signal.SIGSTOP)
    time.sleep(0.05)  # what is under way in the others comes to its end
    if not is_there():
        raise Missed


def at_rendezvous(scene: Scene, job: Job, draw: random.Random) -> None:
    job.wait_for(lambda: job.supervisors(), 60, "a supervisor runs", every_s=0.001)
    time.sleep(draw.uniform(0, 0.1))
    if scene.has_begun(job):
        raise Missed


def at_first_step(scene: Scene, job: Job, draw: random.Random) -> None:
    hold(job, draw.randrange(4), lambda: scene.has_begun(job) and not scene.losses(job.name), "the first step")


def between_steps(scene: Scene, job: Job, draw: random.Random) -> None:
    job.wait_for(lambda: len(scene.losses(job.name)) >= 7, 120, "seven steps are done")
    time.sleep(draw.uniform(0, 1))


def inside_a_save(scene: Scene, job: Job, draw: random.Random) -> None:
    job.wait_for(lambda: len(scene.losses(job.name)) >= 7, 120, "seven steps are done")
    # Rank 0 is the one that makes it a checkpoint.
    hold(job, 0, lambda: scene.unfinished_saves(job.name), "a save")


def near_the_end(scene: Scene, job: Job, draw: random.Random) -> None:
    hold(job, draw.randrange(4), lambda: len(scene.losses(job.name)) >= STEPS - 2, "the last steps")
    if job.process.poll() is not None:
        raise Missed


MOMENTS = (at_rendezvous, at_first_step, between_steps, inside_a_save, near_the_end)
STEPS = 60  # of a job that is killed; the last moment is before their end


def kill_once(scene: Scene, checks: Checks, moment, label: str, draw: random.Random, dead_supervisors: Set[int]) -> None:
    steps = STEPS if moment is near_the_end else 1_000_000
    job = scene.job(label, steps, "--checkpoint-every", "5", "--checkpoint-keep", "0")
    try:
        moment(scene, job, draw)
        kind = draw.choice(["worker", "supervisor"])
        if kind == "worker":
            job.wait_for(lambda: job.workers(), 60, "a worker runs", every_s=0.001)
        supervisors = job.supervisors()
        victim = draw.choice(job.workers() if kind == "worker" else supervisors)
        if kind == "worker":
            dead = rf"process {victim[0]}, was killed by signal 9"
        else:
            dead = rf"supervisor of node n{job.node(victim)} (is gone|was killed)"
        before = len(scene.losses(label))
        os.kill(victim[0], signal.SIGKILL)
        begin = time.monotonic()
        status = job.end(DEADLINE_S)
        took = time.monotonic() - begin
        print(f"{label}: {kind} {victim[0]} killed after {before} steps: exit {status} after {took:.1f} s", flush=True)
        checks.equal(f"{label}: ended within {DEADLINE_S} s", status is not None, True)
        checks.equal(f"{label}: ended with an error", status not in (None, 0), True)
        checks.equal(f"{label}: says that {kind} {victim[0]} died", bool(re.search(dead, job.output())), True)
        checks.equal(f"{label}: processes left", job.left(), [])
        # A supervisor that was killed cannot: the next one does it for all.
        sweepers = [pid for pid, _ in supervisors if pid != victim[0]]
        checks.equal(f"{label}: left in shared memory", shared_memory(sweepers), [])
        dead_supervisors.update(pid for pid, _ in supervisors)
        folder = os.path.join(scene.work, label + ".checkpoints")
        if before >= 6:
            tool("autohet-checkpoint", "verify", folder)
            newest = re.search(r"newest complete checkpoint is '(.*)'; go on from it with --resume", job.output())
            checks.equal(f"{label}: names the newest checkpoint", bool(newest and newest[1].startswith(folder)), True)
        if moment is inside_a_save:
            unfinished = scene.unfinished_saves(label)
            checks.equal(f"{label}: saves that were interrupted", len(unfinished), 1)
            resumed = tool(*scene.command(label, before + 3), "--resume")
            checks.equal(f"{label}: resuming says that it skipped it", unfinished[0] in resumed and "incomplete" in resumed, True)
    finally:
        job.clean_up()
        if checks.failures:
            print(job.output()[-4000:])


def kill_two(scene: Scene, checks: Checks) -> None:
    """Both workers of a node at once: neither death hides the other."""
    job = scene.job("kill-two", 1_000_000)
    try:
        job.wait_for(lambda: len(scene.losses("kill-two")) >= 3, 120, "three steps are done")
        of_node = {}
        for supervisor in job.supervisors():
            of_node[supervisor] = [one for one in job.workers() if one in descendants(supervisor[0])]
        victims = max(of_node.values(), key=len)[:2]
        for victim in victims:
            os.kill(victim[0], signal.SIGKILL)
        status = job.end(DEADLINE_S)
        checks.equal("kill-two: ended with an error", status not in (None, 0), True)
        for victim in victims:
            checks.equal(
                f"kill-two: says that {victim[0]} died", f"process {victim[0]}, was killed by signal 9" in job.output(), True
            )
    finally:
        job.clean_up()
        if checks.failures:
            print(job.output()[-4000:])


def kill(scene: Scene, checks: Checks, rounds: int, seed: int) -> None:
    dead_supervisors: Set[int] = set()
    for number in range(rounds):
        for moment in MOMENTS:
            draw = random.Random(f"{seed} {number} {moment.__name__}")
            label = f"kill-{moment.__name__.replace('_', '-')}-{number}"
            try:
                for _ in range(5):
                    try:
                        kill_once(scene, checks, moment, label, draw, dead_supervisors)
                        break
                    except Missed:
                        print(f"{label}: missed", flush=True)
                else:
                    checks.failures.append(f"{label}: never met")
            except (AssertionError, ToolFailed) as error:
                checks.failures.append(f"{label}: {error}")
    kill_two(scene, checks)
    checks.equal("the next job ends well", scene.job("next", 1).end(60), 0)
    checks.equal("left in shared memory after the next job", shared_memory(dead_supervisors), [])


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
    parser.add_argument("--rounds", type=int, default=1, help="how often each moment is met")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    checks = Checks()
    try:
        scene = Scene(options.work)
        if options.what == "kill":
            kill(scene, checks, options.rounds, options.seed)
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
