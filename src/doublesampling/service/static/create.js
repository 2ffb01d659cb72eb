// The form that makes an experiment.

import { call } from "./api.js";
import { busy, fill, h } from "./dom.js";

const field = (label, control, hint) => h("div", { class: "field" },
  h("label", { for: control.id }, label), control, hint && h("p", { class: "dim", id: `${control.id}-hint` }, hint));

export function showCreate(main) {
  const name = h("input", { id: "name", required: true, maxlength: 500, pattern: "[^\\/]+", title: "no slash: it becomes part of an address", autocomplete: "off" });
  const arms = h("textarea", { id: "arms", required: true, rows: 4, placeholder: "placebo\n10 mg\n20 mg" });
  const reward = h("select", { id: "reward" }, h("option", { value: "BetaBernoulli" }, "Success or failure (1 or 0)"),
    h("option", { value: "Gaussian" }, "A number"), h("option", { value: "LinearGaussian" }, "A number, with a context"));
  const dimension = h("input", { id: "dimension", type: "number", min: 1, max: 1000, value: 2 });
  const horizon = h("input", { id: "horizon", type: "number", min: 2, max: 1e9, placeholder: "not known" });
  const policy = h("select", { id: "policy" }, h("option", { value: "DoubleSampling" }, "Double sampling"),
    h("option", { value: "ThompsonSampling" }, "Thompson sampling"));
  const seed = h("input", { id: "seed", type: "number", min: 0, step: 1, placeholder: "drawn by the server" });
  const units = h("select", { id: "units" }, h("option", { value: "once" }, "once: asked again, it gets the same arm"),
    h("option", { value: "many" }, "as often as it comes"));
  const many = field("Numbers in a context", dimension);
  const far = field("Planned number of decisions", horizon, "Optional. With it, exploration ends in time.");
  const wrong = h("p", { class: "error", role: "alert" });
  const button = h("button", { class: "primary" }, "Create");
  const adapt = () => {
    many.hidden = reward.value !== "LinearGaussian";
    far.hidden = policy.value !== "DoubleSampling";
  };
  reward.addEventListener("change", adapt);
  policy.addEventListener("change", adapt);
  adapt();

  async function send() {
    wrong.textContent = "";
    const body = {
      name: name.value, units: units.value,
      arms: arms.value.split("\n").map((line) => line.trim()).filter(Boolean),
      belief: { kind: reward.value, settings: reward.value === "LinearGaussian" ? { dimension: +dimension.value } : {} },
      policy: { kind: policy.value, settings: policy.value === "DoubleSampling" && horizon.value ? { horizon: +horizon.value } : {} },
    };
    if (seed.value) body.seed = seed.value; // as text: numbers of this language lose digits above 2^53
    try {
      const made = await call("/v1/experiments", { method: "POST", body });
      location.hash = `#/e/${encodeURIComponent(made.name)}`;
    } catch (error) {
      wrong.textContent = error.message;
    }
  }

  const form = h("form", { class: "card narrow" }, h("h1", {}, "New experiment"),
    field("Name", name), field("Arms", arms, "One per line, at least two."), field("What is observed", reward), many,
    field("Policy", policy), far, field("A unit is asked", units),
    field("Seed", seed, "The same seed and the same outcomes give the same decisions."), wrong,
    h("div", { class: "row" }, button, h("a", { class: "button", href: "#/" }, "Cancel")));
  form.addEventListener("submit", busy(button, send));
  fill(main, form);
  name.focus();
  return () => {};
}
