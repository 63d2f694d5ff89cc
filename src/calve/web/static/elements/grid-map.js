// @ts-check
/**
 * <grid-map data-legend='{"c": {"tone": "done", "text": "processed"}}' data-columns='[["id", "label"], …]'
 *   data-href="/x?row={row}&column={column}" data-checkpoint="52"><p>caption</p><pre>2026-03-26⇥..cc.o</pre></grid-map>
 * Draws lines of letters, read by grid-data.js, as cells; {number} in data-href counts them from data-first (1) on.
 */
import { draw, measure } from "./grid.js";
import { readGrid, tellParts } from "./grid-data.js";
import { part, shadow } from "./shadow.js";

const CSS = `
  .scroll { overflow: auto; max-height: 70vh; scrollbar-width: thin }
  canvas { position: sticky; left: 0; top: 0; display: block }
  .tip { position: absolute; z-index: 2; pointer-events: none; background: var(--picture-text); color: var(--picture-panel);
    padding: 2px 8px; border-radius: 6px; font-size: .75rem; width: max-content; max-width: 100%; translate: -50% calc(-100% - 6px) }
  .tip:empty, .parts:empty { display: none }
  .parts { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0 0; font-size: .8125rem } .parts a { color: inherit }
`;
const HTML = `
  <div class="scroll" tabindex="0" role="application"><div class="space"><canvas aria-hidden="true"></canvas></div></div>
  <p class="parts"></p><div class="tip" role="status"></div><div class="hidden"><slot></slot></div>
`;

class GridMap extends HTMLElement {
  root = shadow(this, CSS, HTML);
  box = part(this.root, ".scroll");
  tip = part(this.root, ".tip");
  canvas = /** @type {HTMLCanvasElement} */ (part(this.root, "canvas"));
  probe = this.root.appendChild(document.createElement("i"));
  /** @type {[string, string][]} */ columns = [];
  /** @type {import("./grid.js").Grid} */
  grid = { rows: [], wide: 1, cell: 0, head: 0, notes: 0, foot: 0, dates: [], legend: {}, left: 0, top: 0, cursor: -1, checkpoint: -1, axis: "", colour: (name) => this.colour(name) };
  letters = "";
  first = 1;

  connectedCallback() {
    this.watch = new MutationObserver(() => this.read());
    this.watch.observe(this, { childList: true, characterData: true, subtree: true, attributes: true });
    this.themed = new MutationObserver(() => this.draw());
    this.themed.observe(document.documentElement, { attributes: true });
    this.resized = new ResizeObserver(() => this.arrange());
    this.resized.observe(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.isConnected && this.draw());
    this.box.onscroll = () => requestAnimationFrame(() => this.draw());
    this.box.onkeydown = (event) => this.key(event);
    this.box.onpointermove = (event) => this.choose(this.under(event));
    this.box.onpointerleave = this.box.onblur = () => this.choose(-1);
    this.box.onclick = (event) => { this.choose(this.under(event)); this.open(); };
    this.read();
  }

  disconnectedCallback() {
    for (const one of [this.watch, this.themed, this.resized]) one?.disconnect();
  }

  async read() {
    const data = await readGrid(this), { legend = "{}", first = 1, checkpoint = -1, axis = "" } = this.dataset;
    if (!data) return;
    ({ letters: this.letters, columns: this.columns, rows: this.grid.rows } = data);
    this.first = Number(first);
    Object.assign(this.grid, { legend: JSON.parse(legend), checkpoint: data.checkpoint ?? Number(checkpoint), axis });
    if (data.unread) setTimeout(() => this.isConnected && this.read(), 1000); // the server reads on
    tellParts(part(this.root, ".parts"), data);
    this.box.setAttribute("aria-label", this.querySelector("p, caption")?.textContent ?? "Grid");
    this.arrange();
  }

  /** Choose the size of a cell, and wrap if need be. */
  arrange() {
    const room = this.clientWidth, context = this.canvas.getContext("2d"), { grid, letters } = this;
    if (!room || !context) return;
    measure(context, room, grid, letters ? [] : this.columns);
    if (letters) {
      grid.cell = Math.max(4, Math.min(14, Math.floor(Math.sqrt((room * 400) / letters.length))));
      grid.wide = Math.floor(room / grid.cell);
      const count = Math.ceil(letters.length / grid.wide);
      grid.rows = Array.from({ length: count }, (_, i) => ["", letters.slice(i * grid.wide, (i + 1) * grid.wide)]);
    } else {
      grid.wide = grid.rows.reduce((most, [, line]) => Math.max(most, line.length), Math.max(1, this.columns.length));
      grid.cell = Math.max(6, Math.min(18, (room - grid.head - 2) / grid.wide));
    }
    const full = Math.ceil(grid.rows.length * grid.cell) + grid.foot, height = Math.min(full, innerHeight * 0.7), space = part(this.root, ".space");
    Object.assign(space.style, { width: `${grid.head + grid.wide * grid.cell}px`, height: `${full}px` });
    Object.assign(this.canvas, { width: room * devicePixelRatio, height: height * devicePixelRatio });
    Object.assign(this.canvas.style, { width: `${room}px`, height: `${height}px` });
    if (!this.isArranged) this.box.scrollLeft = space.clientWidth; // the newest columns are the last ones
    this.isArranged = grid.rows.length > 0;
    this.draw();
  }

  /** Return what a custom property is here and now: a canvas knows neither var() nor light-dark(). @param {string} name */
  colour(name) {
    this.probe.style.color = `var(${name})`;
    return getComputedStyle(this.probe).color;
  }

  draw() {
    const context = this.canvas.getContext("2d"), ratio = devicePixelRatio;
    if (!context || !this.grid.cell) return;
    this.grid.left = this.box.scrollLeft;
    this.grid.top = this.box.scrollTop;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, this.canvas.width / ratio, this.canvas.height / ratio, this.grid);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { wide, cursor } = this.grid;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
    if (event.key === "Enter") this.open();
    if (step === undefined) return;
    event.preventDefault();
    this.choose(cursor < 0 ? 0 : cursor + step, true);
  }

  /** Return the number of the cell under the pointer. @param {MouseEvent} event */
  under(event) {
    const box = this.box.getBoundingClientRect(), { cell, head, wide } = this.grid;
    const x = Math.floor((event.clientX - box.left + this.box.scrollLeft - head) / cell);
    return x < 0 || x >= wide ? -1 : Math.floor((event.clientY - box.top + this.box.scrollTop) / cell) * wide + x;
  }

  /** @param {number} cursor @param {boolean} [isShown] */
  choose(cursor, isShown = false) {
    const { grid, box: scroll } = this, row = grid.rows[Math.floor(cursor / grid.wide)], letter = row?.[1][cursor % grid.wide];
    if (cursor >= 0 && letter === undefined && isShown) return;
    grid.cursor = letter === undefined ? -1 : cursor;
    const x = grid.head + (cursor % grid.wide) * grid.cell, y = Math.floor(cursor / grid.wide) * grid.cell;
    const isIn = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ to) => at >= from && at <= to - grid.cell;
    if (isShown && !isIn(x - scroll.scrollLeft, grid.head, scroll.clientWidth)) scroll.scrollLeft = x - scroll.clientWidth / 2;
    if (isShown && !isIn(y - scroll.scrollTop, 0, scroll.clientHeight)) scroll.scrollTop = y - scroll.clientHeight / 2;
    const place = this.letters ? `${cursor + this.first}` : [row?.[0], row?.[2], this.columns[cursor % grid.wide]?.[1]].filter(Boolean).join(" · ");
    this.tip.textContent = letter === undefined ? "" : `${place}: ${grid.legend[letter]?.text ?? "nothing"}`;
    const half = this.tip.offsetWidth / 2 + 1, left = Math.max(half, Math.min(x - scroll.scrollLeft, this.clientWidth - half));
    Object.assign(this.tip.style, { left: `${left}px`, top: `${Math.max(this.tip.offsetHeight + 6, y - scroll.scrollTop)}px` });
    this.draw();
  }

  /** Go to where the chosen cell leads. */
  open() {
    const { cursor, wide, rows } = this.grid, row = rows[Math.floor(cursor / wide)];
    if (cursor < 0 || !this.dataset.href || row[1][cursor % wide] === ".") return;
    /** @type {Record<string, string | number>} */
    const values = { row: row[0], column: this.columns[cursor % wide]?.[0] ?? cursor % wide, number: cursor + this.first };
    location.assign(this.dataset.href.replace(/{(row|column|number)}/g, (_, name) => encodeURIComponent(values[name])));
  }
}

customElements.define("grid-map", GridMap);
