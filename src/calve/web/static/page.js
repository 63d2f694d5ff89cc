// @ts-check
// What every page does besides htmx: forms of actions in a dialog, forms that are sent when a choice changes, and what a
// live update leaves alone. Keys are in elements/keyboard.js.

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));

document.addEventListener("click", async (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (!target || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const opener = /** @type {HTMLAnchorElement | null} */ (target.closest("a[data-dialog]"));
  if (opener) {
    event.preventDefault();
    await open(opener.href);
  } else if (target.closest("[data-close]") && dialog.open) {
    event.preventDefault();
    dialog.close();
  } else if (target === dialog) {
    dialog.close(); // its backdrop
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.removeAttribute("open");
  }
});

/** @param {string} address */
async function open(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html", "X-Calve-Fragment": "1" } }).catch(() => null);
  if (!answer?.ok || answer.redirected) {
    location.assign(address); // the page says what is wrong
    return;
  }
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  dialog.replaceChildren(...made.body.childNodes);
  dialog.showModal();
}

// A live update leaves open what a person has opened, and closed what they have closed. What can be opened in a list
// whose rows move needs an id, so that it stays that of its row.
/** @type {any} */ (window).htmx.registerExtension("kept", {
  /** @param {Element} element @param {{attrName: string}} detail */
  htmx_before_morph_attr: (element, { attrName }) => !(attrName === "open" && element instanceof HTMLDetailsElement),
});

// Without scripts, such a form has a button, and a slider says where it stood.
/** @type {number | undefined} */
let waiting;
document.addEventListener("change", ({ target }) => {
  const form = target instanceof Element ? /** @type {HTMLFormElement | null} */ (target.closest("form[data-submit]")) : null;
  clearTimeout(waiting);
  if (form) waiting = setTimeout(() => form.requestSubmit(), 300); // a slider moves on with each key
});
document.addEventListener("input", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.type !== "range") return;
  const shown = target.parentElement?.querySelector("output");
  if (shown) shown.textContent = target.value;
});
