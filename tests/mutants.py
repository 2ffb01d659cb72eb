"""Break the rules one by one in a copy of the project; the tests must notice every break. Run by ``make mutants``."""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULES = "src/doublesampling/rules/"

# file, what stands there, what a tired person might have written, the tests that must fail
MUTANTS = [
    ("draws.py", "_UNUSED_BITS = np.uint64(12)", "_UNUSED_BITS = np.uint64(11)", "test_draws.py"),
    ("draws.py", "for _ in range(10):", "for _ in range(9):", "test_draws.py"),
    ("draws.py", "d = boosted - 1.0 / 3.0", "d = boosted - 0.2", "test_draws.py"),
    ("draws.py", "log_draw += math.log(u2) / shape", "log_draw += math.log(u1) / shape", "test_draws.py"),
    ("draws.py", "half = 0.5 * freedom", "half = 0.45 * freedom", "test_draws.py"),
    ("draws.py", "odds * (trials - low + 1.0)", "odds * (trials - low)", "test_draws.py"),
    ("draws.py", "left -= count", "left -= 0", "test_draws.py"),
    ("draws.py", "trials * p < 1.0 - u", "trials * p < 1.3 - u", "test_draws.py test_choice.py"),
    ("choose/double_sampling.py", "0 if twice >= number else 1", "0 if twice > number else 1", "test_engine.py"),
    ("choose/baselines.py", "2.0 * math.log(time) / count", "math.log(time) / count", "test_engine.py"),
    ("choose/baselines.py", "math.log(time) / count\n    if mean", "2.0 * math.log(time) / count\n    if mean",
     "test_engine.py"),
    ("choose/baselines.py", "+ math.log(count)) * 1e9", ") * 1e9", "test_engine.py"),
    ("choose/baselines.py", "np.uint64(1)) * rest", "np.uint64(0)) * rest", "test_decide.py"),
    ("optimal_arm/compare_beta_gamma.py", "- 3.0 * bend", "- 2.0 * bend", "test_compare_beta_gamma.py"),
    ("optimal_arm/compare_beta_gamma.py", "third - fifth *", "third + fifth *", "test_compare_beta_gamma.py"),
    ("optimal_arm/compare_beta_gamma.py", "_STEP, _LONGEST = 0.65, 0.5", "_STEP, _LONGEST = 0.8, 0.65",
     "test_compare_beta_gamma.py"),
    ("choose/information_directed.py", "if work[arms, b] > _NEGLIGIBLE:\n                mean",
     "if True:\n                mean",
     "test_compare_beta_gamma.py"),
    ("choose/information_directed.py", "less = max(shape - 1.0, 0.05)", "less = shape", "test_compare_beta_gamma.py"),
    ("choose/baselines.py", "if rest < SURE or", "if rest <= 0.0 or", "test_compare_beta_gamma.py"),
    ("../engine/families/beta.py", "_LEAST_OVERLAP = 1e6, 1e-200", "_LEAST_OVERLAP = 1e6, -1.0",
     "test_compare_beta_gamma.py"),
    ("../live/changes.py", "if before != content:", "if False:", "test_live_experiment.py"),
    ("../service/telling.py", "caller.blind and told.repeated", "False", "test_service_changes.py"),
    ("optimal_arm/compare_beta_gamma.py", "swapped != mirrored", "swapped == mirrored", "test_compare_beta_gamma.py"),
    ("optimal_arm/compare_beta_gamma.py", "parameters[1, 0] - 1.0", "parameters[1, 0]", "test_compare_beta_gamma.py"),
    ("optimal_arm/recurrence.py", "* track[BELOW + third]\n            rise", "\n            rise",
     "test_compare_beta_gamma.py"),
    ("choose/information_directed.py", "chances[b] += 1.0 - share", "chances[b] = 1.0 - share", "test_rewards.py"),
    ("dirichlet.py", "word, other = next_uniform(word)", "other = next_uniform(word)[1]", "test_rewards.py"),
    ("draws.py", "np.uint64(27)", "np.uint64(29)", "test_draws.py"),
    ("dirichlet.py", "concentration[k] - 1.0 / 3.0", "concentration[k]", "test_rewards.py"),
    ("optimal_arm/compare_student.py", "- down - down_next", "- down + down_next", "test_compare_student.py"),
    ("optimal_arm/compare_student.py", "_STEP = 0.65", "_STEP = 0.75", "test_compare_student.py"),
    ("optimal_arm/compare_student.py", "weights, weighted = 0.5", "weights, weighted = 0.6", "test_compare_student.py"),
    ("special.py", "1.0 / 1260.0", "1.0 / 1250.0", "test_special.py"),
    ("special.py", "top * r + 1971.5909503065514427", "top * r + 1971.5909603065514427", "test_special.py"),
    ("special.py", "gap > _LOG_HALF", "gap > -1e-9", "test_special.py"),
    ("posterior.py", "beta + 0.5 * gain * error * error", "beta + 0.5 * error * error", "test_beliefs.py"),
    ("posterior.py", "old * keep - work[i] * mix", "old * keep", "test_beliefs.py"),
    ("posterior.py", "2.0 * alpha", "alpha", "test_beliefs.py"),
    ("allocate.py", "floor + (left - free * floor) *", "max(floor, left) *", "test_allocation_rules.py"),
    ("allocate.py", "(inside - out[a]) * excess >= 0.0", "(inside - out[a]) * excess <= 0.0",
     "test_allocation_rules.py"),
    ("allocate.py", "root / (root + count - 1.0)", "root / (root + count)", "test_allocation_rules.py"),
    ("permuted_blocks.py", "counts[a] == fewest else 0.0", "counts[a] <= fewest + 1 else 0.0",
     "test_allocation_rules.py"),
    ("permuted_blocks.py", "left[arm] -= 1\n", "", "test_allocation_rules.py"),
    ("looks/equal_steps.py", "802.0 * (density[i]", "792.0 * (density[i]", "test_stopping.py"),
    ("looks/equal_steps.py", "lower[a, _MARGIN_POINTS] = below", "lower[a, _MARGIN_POINTS] = 0.999 * below",
     "test_stopping.py"),
    ("looks/panels.py", "found *= below(law, parameters, arms, a, above)",
     "found *= below(law, parameters, arms, a, z)", "test_stopping.py"),
    ("looks/look.py", "return SUPERIORITY if known.place[2] == 1 else FUTILITY", "return FUTILITY", "test_stopping.py"),
    ("looks/look.py", "if i != best and space.p[i]", "if space.p[i]", "test_stopping.py"),
    ("trials/outcomes.py", "put_off(t, t + delay, state.head",
     "put_off(t, min(t + delay + 1, state.head.size - 1), state.head", "test_trials.py"),
    ("../engine/late_kernels.py", "put_off(t, t + delay, late.head", "put_off(t, t, late.head", "test_late.py"),
    ("optimal_arm/regions.py", "EXACT = (28.0, 1.2)", "EXACT = (28.0, 5.0)", "test_optimality.py"),
    ("optimal_arm/regions.py", "EXACT = (28.0, 1.2)", "EXACT = (12.0, 1.2)", "test_optimality.py"),
    ("optimal_arm/regions.py", "origin = parameters[surest, 0]", "origin = 0.0", "test_optimality.py"),
    ("optimal_arm/regions.py", "min(up, max(down, 0.6 * distance))", "up", "test_optimality.py"),
    ("optimal_arm/regions.py", "bottom = max(bottom, upper)", "bottom = bottom", "test_optimality.py"),
    ("optimal_arm/quadrature.py", "return math.sqrt(p * (1.0 - p))", "return p * (1.0 - p)",
     "test_optimality.py test_decide.py"),
    ("choose/candidates.py", "rest / deviation", "(1.0 - p_best) / deviation", "test_candidates.py"),
    ("choose/candidates.py", "- math.log(p.size - 1.0)", "- math.log(p.size)", "test_candidates.py"),
    ("choose/candidates.py", "- math.log1p(-outside)", "", "test_candidates.py"),
    ("choose/mode.py", "ties += 1", "ties = 2", "test_choice.py"),
    ("choose/mode.py", "(address, TIES, np.uint64(0))", "(address, CANDIDATES, np.uint64(0))", "test_choice.py"),
    ("choose/propensities.py", "tie = 1.0 if first_of_ties else 0.5", "tie = 0.5", "test_choice.py"),
    ("choose/propensities.py", "(ties + 1) // 2", "1", "test_choice.py"),
    ("choose/propensities.py", "4.5 * math.sqrt(number)", "1.0 * math.sqrt(number)", "test_choice.py"),
    ("special.py", "shape * (u - math.expm1(u))", "shape * (u - math.expm1(u)) * 1.001", "test_rewards.py"),
    ("special.py", "weight, shift = k * (shape - k)", "weight, shift = k * (shape - k + 1)", "test_rewards.py"),
    ("special.py", "0.5 * math.log(k) - _HALF", "0.5 * math.log(k + 1) - _HALF", "test_rewards.py"),
    ("draws.py", "down *= low / mean", "down *= (low + 1) / mean", "test_rewards.py"),
    ("draws.py", "u < 1.0 - 0.0331", "u < 1.0 - 0.0", "test_draws.py test_rewards.py"),
    ("posterior.py", "prior + discount * (value - prior)", "discount * value", "test_rewards.py"),
    ("posterior.py", "widen = 1.0 / math.sqrt(discount)", "widen = 1.0 / discount", "test_rewards.py"),
    ("posterior.py", "(1.0 + precision * spread) / weight", "/ weight", "test_rewards.py"),
    ("posterior.py", "return shape + 1.0, rate + reward", "return shape + reward, rate + 1.0", "test_rewards.py"),
    ("optimal_arm/compare_beta_gamma.py", "lower, upper = upper, lower", "pass", "test_rewards.py"),
    ("choose/information_directed.py", "- 2.0 * information[b] / gain", "- information[b] / gain", "test_rewards.py"),
    ("choose/information_directed.py", "chances[a] = 1.0\n", "chances[a] = float(a == 0)\n", "test_rewards.py"),
    ("choose/information_directed.py", "work[b, b] - work[b, a]", "work[b, b]", "test_rewards.py"),
    ("dirichlet.py", "votes[best_of_draw(draws, m)] += 1", "votes[0] += 1", "test_rewards.py"),
    ("steps.py", "- 1) // world.every) %", "- 1) // world.every + 1) %", "test_rewards.py"),
    ("../comparison.py", "limits = 0.5 * gaps", "limits = 0.9 * gaps", "test_comparison.py"),
    ("../live/deciding.py", "not within.allocation.at_looks:", "True:", "test_live_look_shares.py"),
    ("../live/looking.py", "known._replace(active=remaining)", "known", "test_live_look_shares.py"),
    ("../live/operating_characteristics.py", "pack(trial, False)", "pack(trial, True)", "test_service_simulations.py"),
    ("../service/simulations.py", "range(size * len(parts), wanted", "range(0, wanted", "test_service_simulations.py"),
    ("../service/simulation_jobs.py", "_job.server == self.server, _job.status.in_(UNFINISHED))\n            change",
     "_job.server != which)\n            change", "test_service_simulations.py"),
    ("../service/views.py", "if caller.blind or session.design.stopping", "if session.design.stopping",
     "test_service_blinding.py"),
    ("../service/access.py", "scope not in caller.scopes:", "False:", "test_service_access.py"),
    ("../service/access.py", "name != caller.experiment:", "False:", "test_service_access.py"),
    ("../service/keys.py", '"digest": digest(token)', '"digest": token', "test_service_access.py"),
    ("../service/middleware.py", "(origin and _netloc(origin) != host)", "False", "test_service_access.py"),
    ("../service/middleware.py", "            if seen > self._body:", "            if False:",
     "test_service_refusals.py"),
    ("../service/responses.py", "200 if repeated else 201", "201", "test_service_http.py"),
    ("../service/telling.py", "keep=caller.blind", "keep=False", "test_service_blinding.py"),
    ("../service/blinding.py", "detail=KEPT if told.repeated else None", "detail=str(told.reward)",
     "test_service_blinding.py"),
    ("../service/key_cache.py", "return not self._seen and not self._required", "return not self._keys",
     "test_service_fail_closed.py"),
    ("../service/middleware.py", "if not all(is_loopback(end) for end in ends):", "if False:",
     "test_service_fail_closed.py"),
    ("../service/protocol.py", "if self._in_head and self._bytes > limits.header_bytes:", "if False:",
     "test_service_limits.py"),
    ("../service/protocol.py", "if each.deadline < now]", "if False]", "test_service_limits.py"),
    ("../service/pools.py", "self._waiting.total() >= LONG_WAITING", "False", "test_service_overview.py"),
    ("../service/response_cache.py", "if self.budget.left <= 0.0:", "if False:", "test_service_overview.py"),
    ("../service/routes/overview.py", "even + 0.25 * (1.0 - even)", "0.0", "test_service_overview.py"),
    ("../live/queries/outcome_counts.py", "sa.func.coalesce(o.previous, 0.0)", "0.0", "test_service_overview.py"),
    ("../service/routes/simulations.py", "square = sum(", "square = 0 * sum(", "test_service_http.py"),
    ("../live/group_commit.py", "                _do([job])", "                pass", "test_service_scale.py"),
    ("../live/queries/allocation_counts.py", "sums = self.counts + chosen", "sums = chosen", "test_service_long.py"),
    ("../live/stores/migrations/versions/v0001.py",
     'sa.UniqueConstraint("decision", "revision", name="ds_outcomes_revision"),', "", "test_live_crowds.py"),
    ("../live/stores/migrations/versions/v0001.py", "BEFORE UPDATE OR DELETE OR TRUNCATE",
     "BEFORE TRUNCATE", "test_live_store.py"),
    ("../live/stores/migrations/versions/v0001.py", "BEFORE {change} ON", "AFTER INSERT ON", "test_live_experiment.py"),
    ("../live/visibility.py", "xid < self.xmax and xid not in self.running", "xid < self.xmax", "test_live_store.py"),
    ("../live/stores/postgres.py", 'isolation_level="REPEATABLE READ"', 'isolation_level="READ COMMITTED"',
     "test_live_store.py"),
    ("../live/checkpoints.py", "extend(belief, checkpoint, unsettled).state", "checkpoint.state", "test_live_store.py"),
    ("../live/checkpoints.py", "if row.xid >= snapshot.xmin), len(rows))",
     "if row.xid >= 10**18), len(rows))", "test_live_store.py"),
    ("../live/checkpoints.py", "and row.place < checkpoint.watermark", "and False", "test_live_beliefs.py"),
    ("../live/checkpoints.py", "beta[row.arm] += sign * (1.0 - value)", "pass", "test_live_experiment.py"),
    ("../live/checkpoints.py", "return False\n    priors", "return True\n    priors", "test_live_beliefs.py"),
    ("../live/deciding.py", "realization=number)", "realization=0)", "test_live_experiment.py"),
    ("../live/asking.py", "time = current.decisions + 1 + position",
     "time = current.decisions + 1", "test_live_experiment.py"),
    ("../live/telling.py", "if item.keep or item.reward in (against[0]", "if True or item.reward in (against[0]",
     "test_live_experiment.py"),
    ("../live/telling.py", "if not row[\"imputed\"]]", "]", "test_live_experiment.py"),
    ("../live/queries/revisions.py", "self._asked[decision].experiment != self._ref.id", "False",
     "test_live_bad_input.py"),
    ("../live/telling.py", "return earlier[gone[-1] + 1 :] if gone", "return earlier if gone", "test_live_void.py"),
    ("../live/replay.py", " - _count_seen(self.voided, seen)", "", "test_live_void.py"),
    ("../live/state_cache.py", " - count_voided(folded.settled)", "", "test_live_void.py"),
    ("../live/queries/idempotency.py", "(request.scope, request.request_key, request.part)",
     "(request.scope, request.request_key, 0)", "test_live_scope.py"),
    ("../live/queries/idempotency.py", "outcomes.c.kind == \"voided\"", "outcomes.c.kind == \"never\"",
     "test_live_void.py"),
    ("../live/stores/sqlite.py", "            self._check_files(connection)  # the last thing before the commit\n", "",
     "test_live_replaced.py"),
    ("../live/stores/files.py", "if found == expected:", "if found is not None:", "test_live_replaced.py"),
    ("../live/stores/files.py", "PRIVATE = 0o600", "PRIVATE = 0o644", "test_live_replaced.py"),
    ("../live/state_cache.py", "if moment.incarnation != self._incarnation:", "if self._incarnation is None:",
     "test_live_backup.py"),
    ("../live/state_cache.py", " or not (counted and counted[2])", "", "test_live_backup.py"),
    ("../live/state_cache.py", "if self._store.incarnation(connection) == incarnation:", "if True:",
     "test_live_backup.py"),
    ("../live/stores/restore.py", "made.execute(sa.insert(keys), late)", "pass", "test_live_backup.py"),
    ("../live/stores/postgres.py", "if used > int(", "if 0 > int(", "test_live_backup.py"),
    ("../live/queries/audit.py", "rank < last_rank", "rank <= last_rank", "test_live_audit.py"),
    ("../live/stores/sqlite.py", "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF", "test_live_store.py"),
    ("../live/stores/sqlite.py", '"BEGIN IMMEDIATE" if writes else "BEGIN"', '"BEGIN"', "test_live_crowds.py"),
    ("../live/stores/db_errors.py", 'name == "SQLITE_FULL"', 'name == "SQLITE_NEVER"', "test_live_crowds.py"),
    ("../live/stores/identity.py", "if version > HEAD:", "if False:", "test_live_store.py"),
    ("../live/sequence_cache.py", "row.revision > 1 and row.place < self._watermark", "False",
     "test_live_sequences.py"),
    ("../live/sequence_cache.py", "self.ref.store.incarnation(connection) == self._known[0]", "True",
     "test_live_sequences.py"),
    ("../client/analysing.py", '"reference": arms[-1]', '"reference": 0', "test_client_analysis.py"),
    ("../service/version_cache.py", "known != version", "False", "test_client_analysis.py"),
    ("../service/version_cache.py", "await asyncio.shield(job)", "await job", "test_client_analysis.py"),
    ("../inference/analysis.py", "(kept > dropped).all()", "later.any()", "test_live_analysis.py"),
    ("../live/exact_testing.py", "beyond = 1 if", "beyond = 0 if", "test_live_exact_test.py"),
    ("../live/exact_testing.py", "late[carried] |=", "late[carried] &=", "test_live_exact_test.py"),
    ("../inference/trust.py", "open_ = log.available[:, list(arms)].all(axis=1)", "open_ = (shares > 0.0).all(axis=1)",
     "test_inference_blocks.py"),
    ("../inference/blocks.py", "& (rows - known < slots[known])", "", "test_inference_blocks.py"),
    ("../inference/scores.py", "rate[propensities <= 0.0] = 0.0", "pass", "test_inference_blocks.py"),
    ("../inference/fixed_targets.py", "h = 1.0 / np.sqrt(spread)", "h = np.ones(spread.size)", "test_fixed_targets.py"),
    ("../live/operating_characteristics.py", "1.0 - means.mean()", "means.mean()", "test_live_cli.py"),
]  # fmt: skip


def noticed(file: str, right: str, wrong: str, tests: str) -> bool:
    """Whether the tests fail on a copy with one break."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", "out", ".*_cache"))
        path = copy / RULES / file
        text = path.read_text()
        if text.count(right) < 1:
            sys.exit(f"{file} no longer holds {right!r}: bring tests/mutants.py up to date.")
        path.write_text(text.replace(right, wrong))
        command = [sys.executable, "-m", "pytest", "-x", "-q", *(f"tests/{name}" for name in tests.split())]
        run = subprocess.run(
            command,
            cwd=copy,
            env={"PYTHONPATH": str(copy / "src"), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
            capture_output=True,
        )
        return run.returncode == 1


def main() -> int:
    """Try every mutant; the exit status is the number that lived."""
    everything = " ".join(sorted({name for *_, tests in MUTANTS for name in tests.split()}))
    if noticed("draws.py", "import math", "import math", everything):
        sys.exit("The tests fail without any break: mend them first.")
    lived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda mutant: noticed(*mutant), MUTANTS)
        for (file, right, wrong, _), seen in zip(MUTANTS, outcomes, strict=True):
            lived += not seen
            print(f"{'noticed' if seen else 'LIVED  '}  {file}: {right}  ->  {wrong or '(nothing)'}", flush=True)
    print(f"{len(MUTANTS) - lived} of {len(MUTANTS)} breaks noticed")
    return lived


if __name__ == "__main__":
    sys.exit(main())
