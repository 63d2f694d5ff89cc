// @ts-check
/** <flow-graph id><svg class="graph">…</svg></flow-graph>: pan, zoom, and walk along the edges of a server's picture. */
import { highlight, neighbour } from "./graph-edges.js";
import { part, shadow } from "./shadow.js";

const CSS = `
  .view { overflow: hidden; touch-action: pan-y; cursor: grab } .view:active { cursor: grabbing }
  .stage { transform-origin: 0 0; width: max-content }
  .tools { position: absolute; right: 8px; bottom: 8px; display: flex; gap: 4px; opacity: .85 }
  :host(:hover) .tools, :host(:focus-within) .tools { opacity: 1 }
  .tools button { min-width: 28px; min-height: 24px; padding: 2px 6px; font-size: .75rem }
  @media (max-width: 800px) { .tools { position: static; justify-content: end; padding: 4px 8px 8px } }
  @media print { .tools { display: none } .stage { transform: none !important } .view { height: auto !important } }
`;
const HTML = `
  <div class="view"><div class="stage"><slot></slot></div></div>
  <div class="tools"><button type="button" data-do="in" aria-label="Zoom in" title="Zoom in: +">+</button>
  <button type="button" data-do="out" aria-label="Zoom out" title="Zoom out: -">−</button>
  <button type="button" data-do="fit" aria-label="Fit" title="Fit: 0">fit</button></div>
`;
const LEAST = 0.1, MOST = 3, READABLE = 0.6;
/** Where each graph was left, for when its element is replaced. @type {Map<string, {x: number, y: number, k: number}>} */
const left = new Map();

class FlowGraph extends HTMLElement {
  root = shadow(this, CSS, HTML);
  view = part(this.root, ".view");
  stage = part(this.root, ".stage");
  at = { x: 0, y: 0, k: 1 };
  isMoved = false;
  /** @type {Map<number, PointerEvent>} */
  pointers = new Map();

  connectedCallback() {
    const kept = left.get(this.id);
    requestAnimationFrame(() => { if (kept) { this.size(); this.move(kept); } else this.fit(); });
    this.resized = new ResizeObserver(() => { if (!this.isMoved) this.fit(); });
    this.resized.observe(this);
    this.view.onpointerdown = (event) => { this.pointers.set(event.pointerId, event); this.dragged = 0; };
    this.view.onpointermove = (event) => this.drag(event);
    this.view.onpointerup = this.view.onpointercancel = this.view.onpointerleave = (event) => this.pointers.delete(event.pointerId);
    this.view.addEventListener("click", (event) => { if ((this.dragged ?? 0) > 4) event.preventDefault(); }, true);
    this.view.ondragstart = () => false;
    this.view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.onkeydown = (event) => this.key(event);
    for (const name of ["focusin", "pointerover"]) this.addEventListener(name, (event) => highlight(this, event.target));
    part(this.root, ".tools").onclick = (event) => {
      const what = /** @type {HTMLElement} */ (event.target).dataset.do;
      if (what === "fit") this.fit(); else if (what) this.zoom(what === "in" ? 1.25 : 0.8);
    };
  }

  disconnectedCallback() {
    this.resized?.disconnect();
  }

  get svg() {
    return this.querySelector("svg");
  }

  size() {
    const box = this.svg?.viewBox.baseVal;
    const k = Math.min(1, this.clientWidth / (box?.width || 1));
    this.view.style.height = `${Math.max(120, Math.min((box?.height ?? 0) * Math.max(k, READABLE), innerHeight * 0.7))}px`;
    return { box, k };
  }

  /** Show the whole graph, or as much of it as can be read, with the selected node in the middle. */
  fit() {
    const { box, k } = this.size();
    if (!box || !this.clientWidth) return;
    const scale = Math.max(k, Math.min(READABLE, 1));
    const width = box.width * scale;
    this.move({ x: width <= this.clientWidth ? (this.clientWidth - width) / 2 : 0, y: 0, k: scale });
    if (width > this.clientWidth) this.reveal(this.querySelector("a.node.selected") ?? this.querySelector("a.node"), true);
    this.isMoved = false;
    left.delete(this.id);
  }

  /** @param {{x: number, y: number, k: number}} at */
  move(at) {
    this.at = at;
    this.isMoved = true;
    this.stage.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.k})`;
    if (this.id) left.set(this.id, at);
  }

  /** @param {number} by @param {number} [x] @param {number} [y] */
  zoom(by, x = this.clientWidth / 2, y = this.view.clientHeight / 2) {
    const k = Math.min(MOST, Math.max(LEAST, this.at.k * by)), ratio = k / this.at.k;
    this.move({ x: x - (x - this.at.x) * ratio, y: y - (y - this.at.y) * ratio, k });
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !this.matches(":focus-within")) return; // else the page scrolls
    event.preventDefault();
    const box = this.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before || (event.pointerType === "mouse" && !event.buttons)) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    const other = [...this.pointers.values()].find((one) => one.pointerId !== event.pointerId);
    if (other) {
      const distance = (/** @type {PointerEvent} */ one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      const box = this.getBoundingClientRect();
      this.zoom(distance(event) / Math.max(1, distance(before)), other.clientX - box.left, other.clientY - box.top);
    } else this.move({ ...this.at, x: this.at.x + dx, y: this.at.y + (event.pointerType === "touch" ? 0 : dy) });
    this.dragged = (this.dragged ?? 0) + Math.abs(dx) + Math.abs(dy);
    this.pointers.set(event.pointerId, event);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const node = /** @type {Element | null} */ (document.activeElement)?.closest("a.node") ?? null;
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (node && event.key.startsWith("Arrow")) this.reveal(neighbour(this, node, event.key), false)?.focus();
    else return;
    event.preventDefault();
  }

  /** Move a node into view, or into the middle. @param {Element | null} node @param {boolean} isCentred */
  reveal(node, isCentred) {
    if (!node) return null;
    const box = node.getBoundingClientRect(), view = this.view.getBoundingClientRect();
    const off = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ c, /** @type {number} */ d) =>
      isCentred ? (c + d - a - b) / 2 : Math.max(0, c + 8 - a) + Math.min(0, d - 8 - b);
    const dx = off(box.left, box.right, view.left, view.right), dy = off(box.top, box.bottom, view.top, view.bottom);
    if (dx || dy) this.move({ ...this.at, x: this.at.x + dx, y: Math.min(0, this.at.y + dy) });
    return /** @type {SVGAElement} */ (node);
  }
}

customElements.define("flow-graph", FlowGraph);
