// The part of the form that limits the shares of arms.

import { field, fill, h } from "./dom.js";

const share = (id, placeholder) => h("input", { id, type: "number", step: "any", min: 0, max: 1, placeholder });
const whole = (id, placeholder, min) => h("input", { id, type: "number", step: 1, min, placeholder });

// The element, and read(): the allocation to send, or null where nothing was entered. names() lists the arms.
export function limits(names, arms) {
  const floor = share("floor", "none, such as 0.1"), minimum = share("minimum", "none"), cap = share("cap", "none");
  const control = h("select", { id: "control" }), rule = h("select", { id: "control-rule" },
    h("option", { value: "sqrt" }, "√(K − 1) parts, where each other arm has one"), h("option", { value: "match" }, "the largest share of any other arm"),
    h("option", { value: "share" }, "a fixed share"));
  const fixed = share("control-share", "such as 0.3"), burn = whole("burn-in", "none", 0), block = whole("block", "none", 2);
  const renewed = h("select", { id: "update" }, h("option", { value: "" }, "at every decision"), h("option", { value: "look" }, "only at looks"));
  const ruleField = field("Share of the control", rule), fixedField = field("Fixed share", fixed);

  const show = () => {
    ruleField.hidden = !control.value;
    fixedField.hidden = !control.value || rule.value !== "share";
  };
  const list = () => {
    const chosen = control.value;
    fill(control, h("option", { value: "" }, "none"), names().map((name) => h("option", { value: name, selected: name === chosen }, name)));
    show();
  };
  arms.addEventListener("input", list);
  control.addEventListener("change", show);
  rule.addEventListener("change", show);
  list();

  function read() {
    const made = {};
    for (const [name, input] of [["floor", floor], ["minimum", minimum], ["cap", cap], ["burn_in", burn], ["block", block]]) {
      if (input.value.trim()) made[name] = Number(input.value);
    }
    if (control.value && rule.value === "share" && !fixed.value.trim()) throw new Error("Fixed share of the control: enter a number from 0 to 1.");
    if (control.value) made.control = { [control.value]: rule.value === "share" ? Number(fixed.value) : rule.value };
    if (renewed.value) made.update = renewed.value;
    return Object.keys(made).length ? made : null;
  }
  const element = h("details", { id: "limits" }, h("summary", {}, "Limits on the shares of arms (optional)"),
    field("Floor", floor, "The least share of every arm. The policy divides the rest, so that no arm is ever given up."),
    field("Minimum", minimum, "Raises smaller shares to this one and rescales the others. Larger shares stay in proportion."),
    field("Cap", cap, "The largest share of any arm."),
    field("Control arm", control, "Gets a share by a rule, whatever its outcomes are."), ruleField, fixedField,
    field("Burn-in", burn, "Decisions per arm before the policy is asked, in random order."),
    field("Block", block, "Decide in blocks of this many decisions, each of which holds the shares in random order."),
    field("Shares are renewed", renewed, "Trials often keep shares between looks. It needs looks, below."));
  return { element, read };
}
