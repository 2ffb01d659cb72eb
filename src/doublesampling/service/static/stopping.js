// The part of the form that says when outcomes are looked at, and what a look may end.

import { field, fill, h } from "./dom.js";

// name of the setting, label, placeholder, help
const NUMBERS = [
  ["looks", "Looks", "none, such as 100", "How many outcomes lie between two looks, or the numbers of known outcomes at which to look: 100, 200, 400."],
  ["superiority", "Superiority", "none, such as 0.99", "End when the probability that one arm is the best (or better than the control below) is above this. One number, or one per look."],
  ["inferiority", "Inferiority", "none, such as 0.01", "Drop an arm when its probability of being the best (or better than the control) is below this."],
  ["equivalence", "Equivalence", "none, such as 0.9", "End when the probability that all remaining arms differ by less than the margin is above this."],
  ["equivalence_margin", "Equivalence margin", "such as 0.05", "The largest difference of expected rewards that does not matter."],
  ["futility", "Futility", "none, such as 0.9", "End when the probability that no arm beats the control by the margin is above this."],
  ["futility_margin", "Futility margin", "such as 0.05; 0 for any difference", "The smallest difference to the control that would be worth having."],
];
const SEVERAL = ["looks", "superiority", "inferiority", "equivalence", "futility"]; // one number, or one per look
const WORDS = Object.fromEntries(NUMBERS.map(([name, label]) => [name, label]));

class FieldError extends Error {
  constructor(name, message) { super(message); this.field = name; }
}

// The element; read(): the rule to send, null where nothing was entered; refuse(error): show it beside its field.
export function stopping(names, arms) {
  const inputs = Object.fromEntries(NUMBERS.map(([name, , placeholder]) => [name, h("input", { id: `stop-${name}`, autocomplete: "off", inputmode: "decimal", placeholder })]));
  inputs.control = h("select", { id: "stop-control" });
  inputs.enforce = h("select", { id: "stop-enforce" }, h("option", { value: "1" }, "act: drop and end by themselves"), h("option", { value: "0" }, "advise: are stored and shown, and nothing else happens"));
  inputs.participants = h("input", { id: "stop-participants", type: "number", min: 1, step: 1, placeholder: "no limit" });
  const errors = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, h("p", { class: "error", role: "alert", id: `${input.id}-error`, hidden: true })]));
  const shown = (name, label, hint) => {
    const made = field(label, inputs[name], hint);
    inputs[name].setAttribute("aria-describedby", `${inputs[name].id}-hint ${inputs[name].id}-error`);
    made.append(errors[name]);
    return made;
  };
  const list = () => {
    const chosen = inputs.control.value;
    fill(inputs.control, h("option", { value: "" }, "all others"), names().map((name) => h("option", { value: name, selected: name === chosen }, name)));
  };
  arms.addEventListener("input", list);
  list();

  function parse(name) {
    const text = inputs[name].value.trim();
    if (!text) return undefined;
    const parts = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
    if (parts.some((part) => !Number.isFinite(part))) throw new FieldError(name, `${WORDS[name]}: a number${SEVERAL.includes(name) ? ", or several separated by commas" : ""}, got "${text}".`);
    if (parts.length > 1 && !SEVERAL.includes(name)) throw new FieldError(name, `${WORDS[name]}: one number, got ${parts.length}.`);
    return parts.length > 1 ? parts : parts[0];
  }

  function read() {
    for (const error of Object.values(errors)) error.hidden = true;
    const made = Object.fromEntries(NUMBERS.map(([name]) => [name, parse(name)]).filter(([, value]) => value !== undefined));
    const participants = inputs.participants.value ? Number(inputs.participants.value) : null;
    if (inputs.control.value) made.control = inputs.control.value;
    if (!Object.keys(made).length) return { stopping: null, participants };
    if (made.looks === undefined) throw new FieldError("looks", "Looks: enter how many outcomes lie between two looks.");
    if (!["superiority", "inferiority", "equivalence", "futility"].some((name) => name in made)) throw new FieldError("superiority", "A look needs something to find: enter superiority, inferiority, equivalence or futility.");
    for (const name of ["equivalence", "futility"]) {
      if (name in made && !(`${name}_margin` in made)) throw new FieldError(`${name}_margin`, `${WORDS[name]} needs its margin.`);
      if (!(name in made) && `${name}_margin` in made) throw new FieldError(name, `${WORDS[name]}: enter the probability, or leave its margin empty.`);
    }
    if ("futility" in made && !made.control) throw new FieldError("control", "Futility compares with a control: choose it here.");
    return { stopping: { ...made, enforce: inputs.enforce.value === "1" }, participants };
  }

  // Whether the error belongs to a field of this part; it is then shown there.
  function refuse(error) {
    const where = (error.errors ?? []).map((each) => each.where.split(".")).find((path) => path[0] === "stopping" || path[0] === "participants");
    const said = /^(equivalence_margin|futility_margin|looks|superiority|inferiority|equivalence|futility|control)\b/.exec(error.message);
    const name = error.field ?? (where ? where[1] ?? where[0] : said && !/the arm .* which is none/.test(error.message) ? said[1] : null);
    if (!(name in errors)) return false;
    const problem = where ? error.errors.find((each) => each.where === where.join(".")) : null;
    errors[name].textContent = problem ? `${WORDS[name] ?? "This"} ${problem.what}.` : error.message.replaceAll("_", " ");
    errors[name].hidden = false;
    element.open = true;
    inputs[name].focus();
    return true;
  }
  const element = h("details", { id: "stopping" }, h("summary", {}, "When to stop (optional)"),
    h("p", { class: "dim" }, "At each look, the posterior is compared with these probabilities. Every look is stored with its numbers. The rule cannot be changed later."),
    NUMBERS.map(([name, label, , hint]) => shown(name, label, hint)),
    shown("control", "Compared with", "With a control, superiority and inferiority mean better or worse than it."),
    shown("enforce", "What looks do", "Outcomes can still be told after the end."),
    shown("participants", "Largest number of decisions", "No more are made after it. The last look is made when all their outcomes are known."));
  return { element, read, refuse };
}
