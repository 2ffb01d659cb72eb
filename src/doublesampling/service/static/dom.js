// Build elements without HTML strings, so that names of units and arms are never executed.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

let hiding;
export function toast(text, bad = false) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.className = bad ? "shown bad" : "shown";
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.className = ""; }, bad ? 8000 : 3500);
}

// Run a button's action: disable it meanwhile and show errors.
export function busy(button, work) {
  return async (event) => {
    event?.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    try { await work(event); } catch (error) { toast(error.message, true); } finally { button.disabled = false; }
  };
}

export const percent = (x, digits = 1) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(digits)} %`);
export const number = (x, digits = 3) => {
  if (x === null || x === undefined) return "–";
  const size = Math.abs(x);
  return size !== 0 && (size < 0.001 || size >= 1e5) ? x.toExponential(2) : x.toFixed(digits);
};
export const signed = (x, digits = 3) => (x === null || x === undefined ? "–" : `${x < 0 ? "−" : "+"}${number(Math.abs(x), digits)}`);
export const count = (x) => (x === null || x === undefined ? "–" : x.toLocaleString("en"));
export const clock = (iso) => new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
// A reward without superfluous digits.
export const reward = (x) => (x === null || x === undefined ? "–" : Number.isInteger(x) ? `${x}` : number(x));

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return "< 1 s";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toFixed(seconds < 10 * size ? 1 : 0)} ${unit}`;
  }
  return `${seconds.toFixed(0)} s`;
}
export const age = (iso) => duration((Date.now() - new Date(iso)) / 1000);
export const COLOURS = 8;
// With more arms than colours, only some get one and keep it while the page is open; the others are grey.
let coloured = null;
export const setColoured = (arms) => { coloured = arms === null ? null : new Map(arms.map((arm, i) => [arm, i])); };
export const colourOf = (arm) => (arm === null || arm === undefined ? null : coloured ? coloured.get(arm) ?? null : arm % COLOURS);
export const colourClass = (arm) => { const c = colourOf(arm); return c === null ? "grey" : `c${c}`; };
export const swatch = (arm) => (arm === null || arm === undefined ? null : h("span", { class: `swatch ${colourClass(arm)}`, "aria-hidden": "true" }));

// A name that may be long: truncated where there is no room, complete in its title.
export const named = (name, tag = "span") => h(tag, { class: "named", title: name.length > 24 ? name : null }, name);
export const armName = (arm, name, ...more) => h("span", { class: "arm-name" }, swatch(arm), h("span", {}, named(name), ...more));
export const shorten = (name, most = 28) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
export const whom = (d) => d.unit ?? (d.number === undefined ? "this decision" : `decision ${d.number}`);

export const field = (label, control, hint) => h("div", { class: "field" },
  h("label", { for: control.id }, label), control, hint && h("p", { class: "dim", id: `${control.id}-hint` }, hint));

// A dialog with a form; resolves with the result of `read`, or null where it was cancelled.
export function ask(title, content, { yes = "OK", no = "Cancel", danger = false, read = () => true } = {}) {
  return new Promise((done) => {
    const go = h("button", { class: danger ? "primary danger" : "primary", value: "yes" }, yes);
    const dialog = h("dialog", { "aria-label": title }, h("form", { method: "dialog" }, h("h2", {}, title), content,
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => dialog.close("no") }, no), go)));
    dialog.addEventListener("close", () => {
      const answer = dialog.returnValue === "yes" ? read() : null;
      dialog.remove();
      done(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector("[autofocus]") ?? go).focus();
  });
}
