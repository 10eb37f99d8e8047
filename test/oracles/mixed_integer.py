#!/usr/bin/env python3
# ===- mixed_integer.py - the planner's problems as mixed-integer programs -===#
#
# A second oracle beside brute force: reads the instances that PlannerInstances
# prints, states each as it is written down in papers, without our solvers'
# reductions (a binary for each device and group, for each worker and unit), and
# has HiGHS solve it. What our solver reached must be what is best.
#
# ===----------------------------------------------------------------------===#

import collections
import json
import sys

import highspy

# HiGHS keeps constraints within 1e-6, and some are 100 times a binary.
EXACT = 1e-5
# MixProblem.h: up to a thousandth.
MIX = 2e-3


class Program:
    """One mixed-integer program; its best objective, None where infeasible."""

    presolve = "on"

    def __init__(self):
        self.solver = highspy.Highs()
        self.solver.silent()
        for option in ("mip_rel_gap", "mip_abs_gap"):
            self.solver.setOptionValue(option, 1e-9)
        self.solver.setOptionValue("threads", 1)
        self.solver.setOptionValue("presolve", Program.presolve)

    def binaries(self, count):
        return [self.solver.addBinary() for _ in range(count)]

    def number(self, low=0.0, high=highspy.kHighsInf):
        return self.solver.addVariable(low, high)

    def integer(self, low, high):
        return self.solver.addIntegral(low, high)

    def sum(self, terms):
        return self.solver.qsum(terms)

    def where(self, constraint):
        self.solver.addConstr(constraint)

    def best(self, objective, highest=False):
        (self.solver.maximize if highest else self.solver.minimize)(objective)
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError("HiGHS ended with %s" % status)
        return self.solver.getObjectiveValue()


def grouping(it):
    """x[u][d]: unit u is in group d. The effective power of a group of p units
    is linear in x once p is known: y[d][p], with w[d][p] its power if it is p."""
    groups = range(it["groups"])
    each = it["microbatches"] / it["groups"]
    units = [kind for kind in it["kinds"] for _ in range(kind["count"])]
    depths = range(1, min(it["max_depth"], len(units)) + 1)
    program = Program()
    x = [program.binaries(it["groups"]) for _ in units]
    for row in x:
        program.where(program.sum(row) <= 1)
    strongest = sorted((unit["power"] for unit in units), reverse=True)
    effective = []
    for d in groups:
        y = program.binaries(len(depths))
        program.where(program.sum(y) == 1)
        program.where(program.sum(row[d] for row in x) == program.sum(p * of for p, of in zip(depths, y)))
        w = [program.number() for _ in depths]
        for p, of, power in zip(depths, y, w):
            program.where(power <= sum(strongest[:p]) * of)
        program.where(program.sum(w) == program.sum(unit["power"] * row[d] for unit, row in zip(units, x)))
        program.where(program.sum(unit["memory"] * row[d] for unit, row in zip(units, x)) >= it["least_memory"])
        effective.append(program.sum(each / (each + p - 1) * power for p, power in zip(depths, w)))
    if it["of"] == "sum":
        return program.best(program.sum(effective), highest=True)
    least = program.number()
    for power in effective:
        program.where(least <= power)
    return program.best(it["groups"] * least, highest=True)


def stages(it):
    """x[w][u]: worker w has unit u. cut[w][u]: the next worker begins with u."""
    workers, units = range(len(it["seconds"])), range(len(it["seconds"][0]))
    last = len(workers) - 1
    program = Program()
    x = [program.binaries(len(units)) for _ in workers]
    cut = [program.binaries(len(units)) for _ in workers[:-1]]
    for u in units:
        program.where(program.sum(x[w][u] for w in workers) == 1)
    for w, begins in enumerate(cut):
        # Who has a unit has the next one, too, or the next worker begins there.
        program.where(program.sum(begins) == 1)
        program.where(begins[0] == 0)
        for u in units[1:]:
            program.where(x[w][u - 1] - x[w][u] <= begins[u])
            program.where(begins[u] <= x[w][u - 1])
            program.where(begins[u] <= x[w + 1][u])
    program.where(x[0][0] == 1)
    program.where(x[last][units[-1]] == 1)
    period, way = program.number(), [program.number() for _ in workers]
    for w in workers:
        spent = program.sum(it["seconds"][w][u] * x[w][u] for u in units)
        program.where(spent <= period)
        bytes_of = program.sum(it["bytes_in_flight"][u] * (2 + last - w) * x[w][u] for u in units)
        program.where(bytes_of <= it["limits"][w])
        behind = spent
        if w < last:
            there = program.sum(it["transfers"][w][u][0] * cut[w][u] for u in units)
            back = program.sum(it["transfers"][w][u][1] * cut[w][u] for u in units)
            program.where(there <= period)
            program.where(back <= period)
            behind = spent + there + back + way[w + 1]
        program.where(way[w] >= behind)
        if it["in_flight"][w]:
            program.where(way[w] <= it["in_flight"][w] * period)
    return program.best((it["microbatches"] - 1) * period + way[0])


def batch(it):
    """n[r] microbatches, run in the way pick[r][j]."""
    program = Program()
    end = program.number()
    samples = []
    for replica in it["replicas"]:
        most = it["batch"] // replica["size"]
        if most < 1:
            return None
        n = program.integer(1, most)
        samples.append(replica["size"] * n)
        pick = program.binaries(len(replica["lines"]))
        program.where(program.sum(pick) == 1)
        for (period, way), picked in zip(replica["lines"], pick):
            longest = way + (most - 1) * period
            program.where(end >= way - period + period * n - longest * (1 - picked))
    program.where(program.sum(samples) == it["batch"])
    return program.best(end)


def mix(it):
    """used[i] and n[i] for every copy of a template that there is room for."""
    program = Program()
    end = program.number()
    samples, taken = [], [[] for _ in it["available"]]
    for made in it["templates"]:
        copies = min(have // need for have, need in zip(it["available"], made["devices"]) if need)
        most = -(-it["batch"] // made["size"])
        longest = made["first"] + (most - 1) * made["period"]
        before = None
        for used in program.binaries(copies):
            n = program.integer(0, most)
            program.where(n <= most * used)
            program.where(used <= n)
            program.where(end >= made["first"] - made["period"] + made["period"] * n - longest * (1 - used))
            samples.append(made["size"] * n)
            for kind, need in enumerate(made["devices"]):
                taken[kind].append(need * used)
            if before is not None:  # copies are equal
                program.where(before >= n)
            before = n
    if not samples:
        return None
    program.where(program.sum(samples) >= it["batch"])
    for have, terms in zip(it["available"], taken):
        program.where(program.sum(terms) <= have)
    return program.best(end)


PROBLEMS = {"grouping": grouping, "stages": stages, "batch": batch, "mix": mix}


def faults(it, best):
    """What our solver's answer contradicts."""
    found, name = it["found"], it["problem"]
    if (found is None) != (best is None):
        return ["found %s, HiGHS %s" % (found, best)]
    if best is None:
        return []
    wrong = []
    tolerance = (MIX if name == "mix" else EXACT) * abs(best)
    if abs(found - best) > tolerance:
        wrong.append("found %.9g, best is %.9g" % (found, best))
    if "bound" in it:
        better = it["bound"] - best if name == "grouping" else best - it["bound"]
        if better < -EXACT * abs(best):
            wrong.append("bound %.9g, best is %.9g" % (it["bound"], best))
    improved = it.get("improved")
    if improved is not None and improved > best * (1 + EXACT):
        wrong.append("the local search has %.9g, best is %.9g" % (improved, best))
    return wrong


def main():
    counts, failed = collections.Counter(), 0
    for number, line in enumerate(sys.stdin):
        it = json.loads(line)
        solve = PROBLEMS[it["problem"]]
        wrong = faults(it, best := solve(it))
        if wrong:
            # HiGHS 1.16's presolve has lost best solutions: ask without it.
            Program.presolve = "off"
            wrong = faults(it, best := solve(it))
            Program.presolve = "on"
        counts[it["problem"], "solved" if best is not None else "impossible"] += 1
        for fault in wrong:
            failed += 1
            print("line %d: %s: %s\n  %s" % (number + 1, it["problem"], fault, line.strip()))
    for name in PROBLEMS:
        print("%s: %d solved, %d impossible" % (name, counts[name, "solved"], counts[name, "impossible"]))
        # A test of nothing is none.
        failed += counts[name, "solved"] == 0
    print("%d instances, %d wrong" % (sum(counts.values()), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
