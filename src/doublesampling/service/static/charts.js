// Charts with uPlot, redrawn when the theme or the width changes. Drag to zoom, double click to reset.

import { colourOf, h } from "./dom.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (arm) => { const c = colourOf(arm); return c === null ? style("--dim") : style(`--c${c}`); };
const veil = (hex, share) => hex + Math.round(2.55 * share).toString(16).padStart(2, "0"); // #rrggbb and a share of 100
export const fade = (name, share) => veil(style(name), share);
export const faint = (arm, share) => veil(colour(arm), share);
const short = (v) => (v === null ? "" : Math.abs(v) >= 1e6 ? `${v / 1e6}M` : Math.abs(v) >= 1e4 ? `${v / 1e3}k` : `${+v.toFixed(3)}`);
const date = (seconds) => new Date(1000 * seconds).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

// Days on a long axis, times on a short one; the first tick always shows its day.
function dates(splits) {
  const span = splits.at(-1) - splits[0], at = (v) => new Date(1000 * v);
  const day = (v) => at(v).toLocaleDateString(undefined, { day: "numeric", month: "short", ...(span > 3e7 ? { year: "numeric" } : {}) });
  const time = (v) => at(v).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", ...(span < 300 ? { second: "2-digit" } : {}) });
  return splits.map((v, i) => (span > 3 * 86400 ? day(v) : i === 0 || day(v) !== day(splits[i - 1]) ? `${time(v)}\n${day(v)}` : time(v)));
}

export const share = (_, v) => (v === null || v === undefined ? "–" : `${(100 * v).toFixed(1)} %`);
export const line = (arm, label, more = {}) => ({ label, stroke: () => colour(arm), width: 2, points: { show: false }, dash: arm === null ? [4, 4] : undefined, ...more });

const MARKS = { pause: "--bad", resume: "--good", add_arm: "--accent", drop_arm: "--accent", history: "--dim", amended: "--c1", withdrawn: "--c1", voided: "--c1" };

// Vertical lines at events of the experiment.
const marksPlugin = (chart) => ({
  hooks: {
    draw: (plot) => {
      const { ctx, bbox } = plot, ratio = devicePixelRatio || 1;
      ctx.save();
      for (const mark of chart.marks ?? []) {
        const x = plot.valToPos(mark.x, "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.strokeStyle = ctx.fillStyle = style(MARKS[mark.kind] ?? "--dim");
        ctx.lineWidth = ratio;
        ctx.setLineDash([3 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.beginPath();
        ctx.moveTo(x - 4 * ratio, bbox.top);
        ctx.lineTo(x + 4 * ratio, bbox.top);
        ctx.lineTo(x, bbox.top + 6 * ratio);
        ctx.fill();
      }
      ctx.restore();
    },
  },
});

export class Chart {
  // plan() returns { data, series, x, y, time, log, range, marks, note } from what was loaded last, or null
  constructor(title, about, plan) {
    this.plan = plan;
    this.place = h("div", { class: "chart" });
    this.words = h("p", { class: "dim about" }, about);
    this.whole = h("button", { class: "link", hidden: true, onclick: () => this.unzoom() }, "Show all");
    this.element = h("figure", { class: "card", "aria-label": title },
      h("figcaption", {}, h("div", { class: "row between" }, h("h2", {}, title), this.whole), this.words), this.place);
    this.about = about;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.place);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.draw(true);
    this.dark.addEventListener("change", this.redraw);
  }

  resize() {
    if (this.plot && this.place.clientWidth) this.plot.setSize({ width: this.place.clientWidth, height: this.height() });
  }

  height() { return this.place.clientWidth < 480 ? 190 : 230; }

  unzoom() {
    this.zoomed = false;
    this.whole.hidden = true;
    this.draw(true);
  }

  // Show the last part of the x axis, or all of it.
  window(last) {
    const x = this.plot?.data[0];
    if (!x?.length) return;
    if (last === null) { this.unzoom(); return; }
    this.zoomed = true;
    this.whole.hidden = false;
    this.plot.setScale("x", { min: last, max: x[x.length - 1] });
  }

  draw(anew = false) {
    const plan = this.plan();
    if (!plan) {
      this.plot?.destroy();
      this.plot = null;
      this.place.replaceChildren(h("p", { class: "dim nothing" }, "No data yet."));
      return;
    }
    this.words.textContent = plan.note ?? this.about;
    this.marks = plan.marks;
    const shape = JSON.stringify([plan.series.map((s) => s.label), plan.log, plan.x, plan.y]);
    if (this.plot && !anew && shape === this.shape) {
      this.plot.setData(plan.data, !this.zoomed); // keep the zoom
      if (this.zoomed) this.plot.redraw();
      return;
    }
    this.shape = shape;
    this.zoomed = false;
    this.whole.hidden = true;
    this.plot?.destroy();
    this.place.replaceChildren();
    this.plot = new uPlot(this.options(plan), plan.data, this.place);
  }

  options(plan) {
    const ink = style("--dim"), grid = style("--line");
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui", labelFont: "12px system-ui", labelSize: 18, labelGap: 2 };
    return {
      width: this.place.clientWidth || 400,
      height: this.height(),
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      legend: { live: true },
      scales: { x: { time: !!plan.time }, y: plan.log ? { distr: 3, log: 10, range: plan.range } : { range: plan.range } },
      axes: [
        { ...axis, label: plan.x, size: plan.time ? 44 : 34, values: (_, v) => (plan.time ? dates(v) : v.map(short)) },
        { ...axis, label: plan.y, size: 54, values: (_, v) => v.map((x) => (plan.share ? `${Math.round(100 * x)} %` : short(x))) },
      ],
      series: [{ label: plan.x, value: (_, v) => (v === null ? "–" : plan.time ? date(v) : short(v)) }, ...plan.series],
      bands: plan.bands,
      plugins: [marksPlugin(this)],
      hooks: {
        ready: [(plot) => plot.root.querySelectorAll(".u-label").forEach((label) => { label.title = label.textContent; })],
        setSelect: [(plot) => { if (plot.select.width > 0) { this.zoomed = true; this.whole.hidden = false; } }],
      },
    };
  }

  leave() {
    this.watch.disconnect();
    this.dark.removeEventListener("change", this.redraw);
    this.plot?.destroy();
  }
}
