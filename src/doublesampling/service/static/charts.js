// The charts: uPlot with our colours, redrawn when the page gets dark or another width.

import { COLOURS, h } from "./dom.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (arm) => style(`--c${arm % COLOURS}`);
const veil = (hex, share) => hex + Math.round(2.55 * share).toString(16).padStart(2, "0"); // #rrggbb and a share of 100
const faint = (arm, share) => veil(colour(arm), share);
const short = (v) => (v === null ? "" : Math.abs(v) >= 1e6 ? `${v / 1e6}M` : Math.abs(v) >= 1e4 ? `${v / 1e3}k` : `${+v.toFixed(3)}`);

export class Chart {
  // plan() returns { data, series, y, log, x } from what was loaded last, or null while there is nothing to draw
  constructor(title, about, plan) {
    this.plan = plan;
    this.place = h("div", { class: "chart" });
    this.words = h("p", { class: "dim about" }, about);
    this.element = h("figure", { class: "card", "aria-label": title }, h("figcaption", {}, h("h2", {}, title), this.words), this.place);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.place);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.draw(true);
    this.dark.addEventListener("change", this.redraw);
  }

  resize() {
    if (this.plot && this.place.clientWidth) this.plot.setSize({ width: this.place.clientWidth, height: this.height() });
  }

  height() { return this.place.clientWidth < 480 ? 180 : 220; }

  draw(anew = false) {
    const plan = this.plan();
    if (!plan) {
      this.plot?.destroy();
      this.plot = null;
      this.place.replaceChildren(h("p", { class: "dim nothing" }, "Nothing to draw yet."));
      return;
    }
    const shape = JSON.stringify([plan.series.map((s) => s.label), plan.log, plan.x]);
    if (this.plot && !anew && shape === this.shape) {
      this.plot.setData(plan.data);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.place.replaceChildren();
    this.plot = new uPlot(this.options(plan), plan.data, this.place);
  }

  options(plan) {
    const ink = style("--dim"), line = style("--line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui" };
    return {
      width: this.place.clientWidth || 400,
      height: this.height(),
      cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      legend: { live: true },
      scales: { x: { time: false }, y: plan.log ? { distr: 3, log: 10, range: plan.range } : { range: plan.range } },
      axes: [
        { ...axis, label: plan.x, labelFont: "12px system-ui", labelSize: 18, size: 34, values: (_, v) => v.map(short) },
        { ...axis, size: 52, values: (_, v) => v.map((x) => (plan.share ? `${Math.round(100 * x)} %` : short(x))) },
      ],
      series: [{ label: plan.x, value: (_, v) => (v === null ? "–" : short(v)) }, ...plan.series],
      bands: plan.bands,
    };
  }

  leave() {
    this.watch.disconnect();
    this.dark.removeEventListener("change", this.redraw);
    this.plot?.destroy();
  }
}

const share = (_, v) => (v === null || v === undefined ? "–" : `${(100 * v).toFixed(1)} %`);
const line = (arm, label, more = {}) => ({ label, stroke: () => colour(arm), width: 2, points: { show: false }, ...more });

export function bestPlan(series) {
  if (!series?.points.length) return null;
  const few = series.points.length < 2;
  return {
    x: "decision", share: true, range: [0, 1],
    data: [series.points.map((p) => p.number), ...series.arms.map((_, i) => series.points.map((p) => p.probability_optimal[i] ?? null))],
    series: series.arms.map((name, i) => line(i, name, { value: share, points: { show: few } })),
  };
}

export function candidatesPlan(series) {
  if (!series?.points.length) return null;
  const most = Math.max(10, ...series.points.map((p) => p.candidates));
  return {
    x: "decision", log: true, range: [0.9, most * 1.3],
    data: [series.points.map((p) => p.number), series.points.map((p) => p.candidates)],
    series: [{ label: "N", stroke: () => style("--accent"), width: 1.5, fill: () => veil(style("--accent"), 12),
      points: { show: series.points.length < 2 }, value: (_, v) => (v === null ? "–" : `${v}`) }],
  };
}

// Shares within a moving stretch of the log, one upon the other.
export function allocationPlan(series) {
  const marks = series?.allocation ?? [];
  if (marks.length < 2) return null;
  const reach = Math.max(1, Math.round(marks.length / 20)), arms = series.arms.length;
  const numbers = [], stacked = series.arms.map(() => []);
  for (let i = 0; i < marks.length; i += 1) {
    const from = i < reach ? { number: 0, counts: [] } : marks[i - reach];
    const total = marks[i].number - from.number;
    numbers.push(marks[i].number);
    let sum = 0;
    for (let a = 0; a < arms; a += 1) {
      sum += ((marks[i].counts[a] ?? 0) - (from.counts[a] ?? 0)) / total;
      stacked[a].push(sum);
    }
  }
  const order = [...series.arms.keys()].reverse(); // the highest sum first, so that lower ones are drawn upon it
  return {
    x: "decision", share: true, range: [0, 1], data: [numbers, ...order.map((a) => stacked[a])],
    series: order.map((a) => line(a, series.arms[a], {
      width: 1, fill: () => faint(a, 70),
      value: (_, v, __, i) => (i === null || v === null ? "–" : share(_, v - (a ? stacked[a - 1][i] : 0))),
    })),
    bands: order.slice(0, -1).map((_, i) => ({ series: [i + 1, i + 2] })),
  };
}

export function densityPlan(posterior) {
  const arms = (posterior?.arms ?? []).filter((arm) => arm.density && arm.active);
  if (!arms.length) return null;
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
  return {
    x: "expected reward", range: (_, __, most) => [0, most * 1.05 || 1], data: [x, ...tables.map(at)],
    series: arms.map((arm) => line(arm.arm, arm.name, { fill: () => faint(arm.arm, 12), value: (_, v) => (v === null ? "–" : v.toFixed(2)) })),
  };
}
