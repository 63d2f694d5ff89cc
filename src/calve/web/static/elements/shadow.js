// @ts-check
/**
 * Give an element a shadow tree, which swaps of the page's HTML leave alone: its children stay the server's.
 * The style goes in as a constructed sheet, as the Content-Security-Policy forbids inline styles.
 * @param {HTMLElement} host
 * @param {string} css
 * @param {string} html constant markup, never data
 * @returns {ShadowRoot}
 */
export function shadow(host, css, html) {
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(COMMON + css);
  root.adoptedStyleSheets = [sheet];
  const template = document.createElement("template");
  template.innerHTML = html;
  root.append(template.content);
  return root;
}

const COMMON = `
  :host { display: block; position: relative }
  :host([hidden]) { display: none }
  * { box-sizing: border-box }
  .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
  button, input { font: inherit; color: inherit; background: var(--picture-panel); border: 1px solid var(--picture-line);
    border-radius: 6px; padding: 3px 9px }
  button { cursor: pointer } button:hover { border-color: var(--picture-soft) }
  button[aria-pressed=true] { border-color: var(--picture-accent); color: var(--picture-accent) }
  :focus-visible { outline: 2px solid var(--picture-accent); outline-offset: 1px }
`;

/**
 * Return one element of a shadow tree.
 * @template {HTMLElement} T
 * @param {ShadowRoot} root
 * @param {string} selector
 * @returns {T}
 */
export function part(root, selector) {
  return /** @type {T} */ (root.querySelector(selector));
}
