// The form that creates an experiment, from the catalog of beliefs and policies.

import { call } from "./api.js";
import { busy, field, fill, h } from "./dom.js";
import { limits } from "./limits.js";
import { stopping } from "./stopping.js";
import { parseFeatures } from "./fields.js";

const FIRST = { beliefs: "BetaBernoulli", policies: "DoubleSampling" };
const HINTS = {
  horizon: "The planned number of decisions. With it, exploration decreases towards the end. Leave it empty where the end is open.",
  count: "Automatic: for the planned number of decisions, or for an experiment of any length.",
  dimension: "How many numbers the context of a unit has.",
  features: "One field of the context per line, instead of a dimension: age: standard 60 10 (mean and deviation), weight: number, dose: 0 to 40, smoker: boolean, site: a, b, c.",
  values: "The possible rewards, such as 0, 1, 5.",
};
const AUTOMATIC = "automatic"; // of a choice that may be left open
const COMMON = ["dimension", "features", "values", "horizon"]; // always visible; the other settings are collapsed

export function showCreate(main, { refused }) {
  fill(main, h("p", { class: "dim" }, "Loading…"));
  call("/v1/catalog").then((catalog) => fill(main, form(catalog)))
    .catch((error) => (error.status === 401 ? refused(error) : fill(main, h("div", { class: "card error" }, h("p", {}, error.message)))));
  return () => {};
}

// One select for the class, one control per setting.
function chooser(id, label, components, first) {
  const select = h("select", { id }, components.map((c) => h("option", { value: c.kind, selected: c.kind === first }, c.title + (/^Rewards are/.test(c.about) ? ` (${c.about.split(/[;:]/)[0].toLowerCase()})` : ""))));
  const about = h("p", { class: "dim" }), place = h("div", {});
  let controls = [];
  const show = () => {
    const chosen = components.find((c) => c.kind === select.value);
    about.textContent = chosen.about;
    controls = chosen.settings.map((setting) => ({ setting, control: control(`${id}-${setting.name}`, setting) }));
    const shown = ({ setting, control: c }) => field(words(setting), c, HINTS[setting.name] ?? (setting.about || null));
    const open = controls.filter(({ setting }) => setting.required || COMMON.includes(setting.name));
    const folded = controls.filter((each) => !open.includes(each));
    fill(place, open.map(shown), folded.length > 0 && h("details", {}, h("summary", {}, `More settings of ${chosen.title} (${folded.length})`), folded.map(shown)));
  };
  select.addEventListener("change", show);
  show();
  return {
    element: h("fieldset", {}, h("legend", {}, label), field("Kind", select), about, place),
    read: () => ({ kind: select.value, settings: forAnyLength(select.value, Object.fromEntries(controls.map(({ setting, control: c }) => [setting.name, value(setting, c)]).filter(([, v]) => v !== undefined))) }),
  };
}

// The paper's count stops looking in long runs: an experiment without a planned end gets the one that does not.
const forAnyLength = (kind, settings) => (kind === "DoubleSampling" && !("horizon" in settings) && !("count" in settings) ? { ...settings, count: "anytime" } : settings);

const words = (setting) => setting.name.replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase()) + (setting.required ? "" : " (optional)");

function control(id, setting) {
  if (setting.type === "features") return h("textarea", { id, rows: 3, placeholder: "age: standard 60 10\nsite: a, b, c" });
  const usual = setting.default === null ? "none" : `${setting.default}`;
  if (setting.type === "choice") return h("select", { id }, [...(setting.optional ? [AUTOMATIC] : []), ...setting.choices].map((c) => h("option", { value: c, selected: c === (setting.default ?? AUTOMATIC) }, c)));
  if (setting.type === "boolean") return h("select", { id }, ["no", "yes"].map((word, i) => h("option", { value: `${i}`, selected: setting.default === Boolean(i) }, word)));
  const placeholder = setting.required ? (setting.list ? "0, 1, 5" : "2") : `${usual}${setting.list ? "; or several, separated by commas" : ""}`;
  return setting.list ? h("input", { id, autocomplete: "off", required: setting.required, placeholder })
    : h("input", { id, type: "number", step: setting.type === "integer" ? 1 : "any", required: setting.required, placeholder });
}

// The value to send; undefined leaves the default.
function value(setting, c) {
  if (setting.type === "choice") return c.value === (setting.default ?? AUTOMATIC) ? undefined : c.value;
  if (setting.type === "boolean") return Boolean(+c.value) === setting.default ? undefined : Boolean(+c.value);
  const text = c.value.trim();
  if (!text) return undefined;
  if (setting.type === "features") return parseFeatures(text);
  const parts = text.split(",").map((part) => Number(part.trim()));
  if (parts.some((part) => !Number.isFinite(part))) throw new Error(`${words(setting)}: numbers separated by commas, got "${text}".`);
  return setting.list && (parts.length > 1 || setting.required) ? parts : parts[0];
}

function form(catalog) {
  const name = h("input", { id: "name", required: true, maxlength: 500, pattern: "[^\\/]+", title: "no slash: it becomes part of a URL", autocomplete: "off" });
  const arms = h("textarea", { id: "arms", required: true, rows: 4, placeholder: "placebo\n10 mg\n20 mg" });
  const seed = h("input", { id: "seed", inputmode: "numeric", pattern: "[0-9]*", title: "a whole number", placeholder: "chosen by the server" });
  const units = h("select", { id: "units" }, h("option", { value: "once" }, "once: it always gets the same arm"),
    h("option", { value: "many" }, "many times: each request gets a new decision"));
  const codes = h("select", { id: "codes" }, h("option", { value: "0" }, "the arm's name"), h("option", { value: "1" }, "a random code instead of the name"));
  const belief = chooser("belief", "What is observed", catalog.beliefs, FIRST.beliefs);
  const policy = chooser("policy", "How arms are chosen", catalog.policies, FIRST.policies);
  const names = () => arms.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const allocation = limits(names, arms), rule = stopping(names, arms);
  const wrong = h("p", { class: "error", role: "alert" }), button = h("button", { class: "primary" }, "Create");

  async function send() {
    wrong.textContent = "";
    try {
      const body = {
        name: name.value, units: units.value, codes: codes.value === "1",
        arms: names(), belief: belief.read(), policy: policy.read(), allocation: allocation.read(), ...rule.read(),
      };
      if (seed.value) body.seed = seed.value; // as text: JavaScript numbers lose digits above 2^53
      const made = await call("/v1/experiments", { method: "POST", body });
      location.hash = `#/e/${encodeURIComponent(made.name)}`;
    } catch (error) {
      if (rule.refuse(error)) return;
      wrong.textContent = error.message;
      wrong.scrollIntoView({ block: "center" });
    }
  }
  const made = h("form", { class: "card narrow" }, h("h1", {}, "New experiment"),
    field("Name", name), field("Arms", arms, "One per line, at least two. The first one is the reference of comparisons, unless you choose another."),
    belief.element, policy.element, allocation.element, rule.element, field("A unit gets a decision", units),
    field("Keys without results see", codes, "Readers and administrators see both."),
    field("Seed", seed, "The same seed and the same outcomes give the same decisions."), wrong,
    h("div", { class: "row" }, button, h("a", { class: "button", href: "#/" }, "Cancel")));
  made.addEventListener("submit", busy(button, send));
  setTimeout(() => name.focus());
  return made;
}
