// Chart data from the series and the posterior. At most eight arms get their own line.

import { fade, faint, line, share } from "./charts.js";
import { shorten } from "./dom.js";
import { contextText } from "./fields.js";

const LINES = 8;

// The arms that get a line: the likeliest ones and the reference.
export function chooseArms(overview) {
  const all = overview.arms.map((arm) => arm.arm);
  if (all.length <= LINES) return null;
  const best = overview.arms.map((arm) => arm.probability_optimal);
  const control = overview.arms.findIndex((arm) => arm.name === overview.reference);
  const ranked = [...all].sort((a, b) => (b === control) - (a === control) || best[b] - best[a] || a - b);
  return ranked.slice(0, LINES - 1).sort((a, b) => a - b);
}

const chosenArms = (arms, chosen) => (chosen === null ? arms.map((_, i) => i) : chosen);

// Positions on the x axis by the number of a decision: the number itself, or when it was asked.
function axis(series, byDate) {
  if (!byDate) return { x: "decision", at: (number) => number };
  const numbers = series.points.map((p) => p.number), times = series.points.map((p) => new Date(p.asked_at) / 1000);
  const at = (number) => {
    if (number <= numbers[0]) return times[0];
    let low = 0, high = numbers.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (numbers[middle] <= number) low = middle; else high = middle; }
    const part = numbers[high] === numbers[low] ? 0 : Math.min((number - numbers[low]) / (numbers[high] - numbers[low]), 1);
    return times[low] + part * (times[high] - times[low]);
  };
  return { x: "date", time: true, at };
}

const marks = (series, place) => (series.happenings ?? []).map((each) => ({ ...each, x: place.time ? new Date(each.at) / 1000 : each.number + 0.5 }));

// Moving averages: the probabilities of single decisions depend on their contexts and vary a lot.
function smooth(values, reach) {
  const sums = [0];
  for (const v of values) sums.push(sums.at(-1) + (v ?? 0));
  return values.map((_, i) => { const from = Math.max(0, i - reach + 1); return (sums[i + 1] - sums[from]) / (i + 1 - from); });
}

export function bestPlan(series, chosen, { byDate = false, contexts = false } = {}) {
  if (!series?.points.length) return null;
  const few = series.points.length < 2, arms = chosenArms(series.arms, chosen), place = axis(series, byDate);
  const reach = Math.max(5, Math.round(series.points.length / 15));
  const values = (arm) => series.points.map((p) => p.probability_optimal[arm] ?? null);
  const data = arms.map((arm) => (contexts ? smooth(values(arm), reach) : values(arm)));
  const rest = series.arms.length - arms.length;
  if (rest > 0) data.push(series.points.map((_, i) => Math.max(0, 1 - data.reduce((sum, each) => sum + (each[i] ?? 0), 0))));
  const lines = arms.map((arm) => line(arm, shorten(series.arms[arm]), { value: share, points: { show: few } }));
  if (rest > 0) lines.push(line(null, `${rest} others together`, { value: share }));
  return { x: place.x, time: place.time, y: "P(best)", share: true, range: [0, 1], marks: marks(series, place),
    data: [series.points.map((p) => place.at(p.number)), ...data], series: lines,
    note: contexts ? `Mean over the contexts of about ${reach} of the shown decisions: what is best depends on the context.` : undefined };
}

export function candidatesPlan(series, { byDate = false, contexts = false } = {}) {
  if (!series?.points.length) return null;
  const most = Math.max(10, ...series.points.map((p) => p.candidates)), place = axis(series, byDate);
  const drawn = series.points.map((p) => p.candidates);
  return { x: place.x, time: place.time, y: "N (log scale)", log: true, range: [0.9, most * 1.3], marks: marks(series, place),
    data: [series.points.map((p) => place.at(p.number)), contexts ? smooth(drawn, Math.max(5, Math.round(drawn.length / 15))) : drawn],
    series: [{ label: "N", stroke: () => fade("--accent", 100), width: 1.5, fill: () => fade("--accent", 12),
      points: { show: series.points.length < 2 }, value: (_, v) => (v === null || v === undefined ? "–" : `${+v.toFixed(1)}`) }] };
}

// Shares within a moving window of the log, stacked.
export function allocationPlan(series, chosen, { byDate = false } = {}) {
  const counted = series?.allocation ?? [];
  if (counted.length < 2 || !series.points.length) return null;
  const reach = Math.max(1, Math.round(counted.length / 20)), place = axis(series, byDate), arms = chosenArms(series.arms, chosen);
  const rest = series.arms.length - arms.length, rows = [...arms, ...(rest > 0 ? [null] : [])];
  const x = [], stacked = rows.map(() => []);
  for (let i = 0; i < counted.length; i += 1) {
    const from = i < reach ? { number: 0, counts: [] } : counted[i - reach];
    const gained = series.arms.map((_, a) => (counted[i].counts[a] ?? 0) - (from.counts[a] ?? 0));
    const total = gained.reduce((sum, g) => sum + g, 0) || 1;
    x.push(place.at(counted[i].number));
    let sum = 0;
    rows.forEach((arm, r) => { sum = arm === null ? 1 : sum + gained[arm] / total; stacked[r].push(sum); });
  }
  const order = [...rows.keys()].reverse(); // the highest sum first, so that lower ones are drawn upon it
  return { x: place.x, time: place.time, y: "share of decisions", share: true, range: [0, 1], marks: marks(series, place), data: [x, ...order.map((r) => stacked[r])],
    series: order.map((r) => line(rows[r], rows[r] === null ? `${rest} others together` : shorten(series.arms[rows[r]]), {
      width: 1, dash: undefined, fill: () => faint(rows[r], 70),
      value: (_, v, __, i) => (i === null || v === null || v === undefined ? "–" : share(_, v - (r ? stacked[r - 1][i] : 0))),
    })),
    bands: order.slice(0, -1).map((_, i) => ({ series: [i + 1, i + 2] })) };
}

// A band that may be looked at after every outcome. Axes start where there is an interval.
export function sequencePlan(sequence, names) {
  const points = (sequence?.points ?? []).filter((p) => p.low !== null && p.high !== null);
  if (points.length < 2) return null;
  const [arm, reference] = sequence.contrast, percent = Math.round(100 * sequence.level), edge = { width: 1, value: signedValue };
  const title = reference === undefined ? shorten(names[arm]) : `${shorten(names[arm])} − ${shorten(names[reference])}`;
  return { x: "outcome", y: "difference", range: (_, low, high) => [Math.min(low, -0.01), Math.max(high, 0.01)],
    data: [points.map((p) => p.outcomes), points.map((p) => p.high), points.map((p) => p.low), points.map((p) => p.estimate), points.map(() => 0)],
    series: [line(arm, `highest, ${percent} %`, edge), line(arm, `lowest, ${percent} %`, edge), line(arm, title, { value: signedValue }),
      { label: "no difference", stroke: () => fade("--dim", 100), width: 1, dash: [4, 4], points: { show: false }, value: () => "0" }],
    bands: [{ series: [1, 2], fill: () => faint(arm, 22) }],
    note: `${title}: all these intervals hold together with ${percent} % confidence, however often one looks.${sequence.reason ? ` None now: ${sequence.reason}` : ""}` };
}

const signedValue = (_, v) => (v === null || v === undefined ? "–" : `${v >= 0 ? "+" : "−"}${Math.abs(v).toFixed(3)}`);

export function densityPlan(posterior, chosen) {
  const every = (posterior?.arms ?? []).filter((arm) => arm.density && arm.active);
  if (!every.length) return null;
  const wanted = new Set(chosenArms(posterior.arms, chosen)), arms = every.filter((arm) => wanted.has(arm.arm));
  const tables = arms.map((arm) => [arm.density.x, arm.density.y]);
  const x = [...new Set(tables.flatMap(([grid]) => grid))].sort((a, b) => a - b);
  const at = ([grid, y]) => {
    let i = 0;
    return x.map((v) => {
      if (v < grid[0] || v > grid[grid.length - 1]) return 0;
      while (i < grid.length - 2 && grid[i + 1] < v) i += 1;
      const part = (v - grid[i]) / (grid[i + 1] - grid[i] || 1);
      return y[i] + part * (y[i + 1] - y[i]);
    });
  };
  const hidden = every.length - arms.length;
  return { x: "expected reward", y: "posterior density", range: (_, __, most) => [0, most * 1.05 || 1], data: [x, ...tables.map(at)],
    series: arms.map((arm) => line(arm.arm, shorten(arm.name), { fill: () => faint(arm.arm, 12), value: (_, v) => (v === null || v === undefined ? "–" : v.toFixed(2)) })),
    note: [posterior.context && `At the context (${contextText(posterior.context)}).`, hidden > 0 && `The likeliest ${arms.length} of ${every.length} arms.`].filter(Boolean).join(" ") || undefined };
}
