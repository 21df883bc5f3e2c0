// What changes something: it is told in full and confirmed before it is done, needs the token, and what came of it is said.

import { act, hasToken, useToken } from "./api.js";
import { h } from "./dom.js";

// Asks whether to do it. `what` is {title, text, path, body, done(answer)}; `after` is called when it was done.
export function confirmAct(what, after = () => {}) {
  const outcome = h("p", { class: "outcome", role: "status" });
  const token = tokenField();
  const go = h("button", { class: "danger", type: "submit" }, what.title);
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const submit = async (event) => {
    event.preventDefault();
    if (token.input.value) useToken(token.input.value);
    go.disabled = true;
    say(outcome, "", "Asking …");
    try {
      const answer = await act(what.path, what.body);
      say(outcome, "good", what.done(answer));
      close.textContent = "Close";
      go.hidden = true;
      after();
    } catch (error) {
      if (error.status === 401) {
        useToken("");
        token.row.hidden = false;
        token.input.focus();
      }
      say(outcome, "bad", error.message);
      go.disabled = false;
    }
  };
  const dialog = open(what.title, h("form", { onsubmit: submit }, h("p", {}, what.text), token.row, outcome, h("div", { class: "buttons" }, close, go)));
  (hasToken() ? close : token.input).focus();
}

// Asks for the token alone; `given` is called when there is one.
export function askToken(why, given) {
  const token = tokenField();
  token.row.hidden = false;
  const submit = (event) => {
    event.preventDefault();
    if (!token.input.value) return;
    useToken(token.input.value);
    dialog.close();
    given();
  };
  const dialog = open("Token", h("form", { onsubmit: submit }, h("p", {}, why), token.row,
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), h("button", { class: "primary", type: "submit" }, "Use it"))));
  token.input.focus();
}

// Shows something until it is closed.
export function open(title, ...children) {
  const dialog = h("dialog", { "aria-label": title }, h("h2", {}, title), ...children);
  dialog.addEventListener("close", () => dialog.remove());
  document.getElementById("dialogs").replaceChildren(dialog);
  dialog.showModal();
  return dialog;
}

function tokenField() {
  const input = h("input", { type: "password", autocomplete: "off", name: "token", "aria-label": "Admin token" });
  const row = h("label", { class: "field" }, h("span", {}, "Admin token"), input,
    h("small", {}, "Kept in this tab until it is closed, and sent to this node alone."));
  row.hidden = hasToken();
  return { row, input };
}

function say(place, kind, text) {
  place.className = `outcome ${kind}`;
  place.textContent = text;
}
