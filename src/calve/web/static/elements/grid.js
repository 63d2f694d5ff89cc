// @ts-check
/**
 * Draws what a <grid-map> shows: rows of letters, a cell for each, of which only those in view are drawn.
 */

const FONT = "11px Inter, system-ui, sans-serif";
const FOOT = 18, NOTES_FROM = 640, DATE = 64;

/**
 * @typedef {object} Grid
 * @property {import("./grid-data.js").Row[]} rows
 * @property {number} wide columns
 * @property {number} cell pixels
 * @property {number} head pixels that the labels take, and the notes with them
 * @property {number} notes pixels that the notes take
 * @property {number} foot pixels below the cells
 * @property {string[]} dates of the columns, if they have any
 * @property {Record<string, {tone: string, faint?: boolean, text: string}>} legend
 * @property {number} left what is scrolled out of view
 * @property {number} top
 * @property {number} cursor the chosen cell, -1 for none
 * @property {number} checkpoint the column that a line stands before, -1 for none
 * @property {string} axis what the columns are
 * @property {(name: string) => string} colour
 */

/**
 * Choose how much room the labels, the notes and the foot take; the notes only where there is plenty.
 * @param {CanvasRenderingContext2D} context @param {number} room @param {Grid} grid @param {[string, string][]} columns
 */
export function measure(context, room, grid, columns) {
  context.font = FONT;
  const [label, note] = [0, 2].map((place) => {
    let longest = "";
    for (const row of grid.rows) if ((row[place] ?? "").length > longest.length) longest = row[place] ?? "";
    return longest ? context.measureText(longest).width + 10 : 0;
  });
  grid.notes = room < NOTES_FROM ? 0 : note;
  grid.head = Math.min(label, room / 3) + grid.notes;
  grid.dates = columns.every(([, text]) => /^\d{4}-\d\d-\d\d/.test(text)) ? columns.map(([, text]) => text.slice(5, 10)) : [];
  grid.foot = columns.length ? FOOT * (grid.dates.length ? 2 : 1) : 0;
}

/** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {Grid} grid */
export function draw(context, width, height, grid) {
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.save();
  context.beginPath();
  context.rect(grid.head, 0, width - grid.head, height);
  context.clip();
  cells(context, width, height, grid);
  lines(context, width, height, grid);
  context.restore();
  labels(context, height, grid);
}

/** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {Grid} grid */
function cells(context, width, height, { rows, wide, cell, head, legend, left, top, colour }) {
  const inner = cell - (cell > 8 ? 2 : 1);
  const y1 = Math.floor(top / cell), y2 = Math.min(rows.length, Math.ceil((top + height) / cell));
  const x1 = Math.floor(left / cell), x2 = Math.min(wide, Math.ceil((left + width - head) / cell));
  for (const [letter, { tone, faint }] of Object.entries(legend)) {
    if (letter === ".") continue;
    const shape = tone === "off" ? dash : inner >= 7 ? SHAPES[tone] ?? square : rectangle;
    context.beginPath();
    for (let y = y1; y < y2; y++) {
      const line = rows[y][1];
      for (let x = line.indexOf(letter, x1); x >= 0 && x < x2; x = line.indexOf(letter, x + 1))
        shape(context, head + x * cell - left, y * cell - top, inner);
    }
    context.globalAlpha = faint ? 0.4 : 1;
    context.fillStyle = context.strokeStyle = colour(`--tone-${tone}`);
    context.lineWidth = 1.5;
    if (shape === hollow) context.stroke(); else context.fill();
  }
  context.globalAlpha = 1;
}

/** @typedef {(context: CanvasRenderingContext2D, x: number, y: number, size: number) => void} Shape */
/** @type {Shape} */
const rectangle = (context, x, y, size) => context.rect(x, y, size, size);
/** @type {Shape} */
const dash = (context, x, y, size) => context.rect(x, y + size / 2 - 1, size, Math.max(1, size / 4));
/** @type {Shape} */
const square = (context, x, y, size) => context.roundRect(x, y, size, size, 2.5);
/** @type {Shape} */
const hollow = (context, x, y, size) => context.roundRect(x + 1, y + 1, size - 2, size - 2, 2);
/** @type {Shape} */
const circle = (context, x, y, size) => {
  context.moveTo(x + size, y + size / 2);
  context.arc(x + size / 2, y + size / 2, size / 2, 0, 2 * Math.PI);
};
/** @type {Shape} */
const triangle = (context, x, y, size) => {
  context.moveTo(x + size / 2, y);
  context.lineTo(x + size, y + size);
  context.lineTo(x, y + size);
  context.closePath();
};
/** A colour is never alone. @type {Record<string, Shape>} */
const SHAPES = { bad: triangle, late: circle, wait: hollow };

/** Draw the checkpoint and the chosen cell. @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {Grid} grid */
function lines(context, width, height, { rows, wide, cell, head, foot: room, dates, left, top, cursor, checkpoint, axis, colour }) {
  const x = head + checkpoint * cell - left - 1, foot = Math.min(height, rows.length * cell - top + room);
  context.textAlign = "left";
  context.fillStyle = colour("--picture-soft");
  for (let place = 0, next = 0; place < dates.length; place++) {
    if (dates[place] === dates[place - 1] || place * cell < next) continue;
    context.fillText(dates[place], head + place * cell - left, foot - FOOT - 4);
    next = place * cell + DATE;
  }
  if (axis && !(checkpoint >= 0 && x < head + context.measureText(axis).width + 80)) context.fillText(axis, head, foot - 4);
  context.fillStyle = context.strokeStyle = colour("--picture-text");
  context.lineWidth = 1.5;
  if (cursor >= 0)
    context.strokeRect(head + (cursor % wide) * cell - left - 1, Math.floor(cursor / wide) * cell - top - 1, cell, cell);
  if (checkpoint < 0) return;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, foot - room + 3);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = x + 2 + context.measureText("checkpoint").width > width ? "right" : "left";
  context.fillText("checkpoint", x + (context.textAlign === "left" ? 2 : 0), foot - 4);
}

/** @param {CanvasRenderingContext2D} context @param {number} height @param {Grid} grid */
function labels(context, height, { rows, cell, head, notes, top, colour }) {
  if (!head) return;
  context.fillStyle = colour("--picture-soft");
  context.textAlign = "right";
  context.textBaseline = "middle";
  const every = Math.ceil(16 / cell), first = Math.ceil(Math.floor(top / cell) / every) * every;
  for (let row = first; row < rows.length && row * cell - top < height; row += every) {
    const y = Math.max(6, row * cell - top + cell / 2 - 1);
    context.fillText(rows[row][0], head - notes - 8, y, head - notes - 8);
    if (notes) context.fillText(rows[row][2] ?? "", head - 8, y, notes - 8);
  }
  context.textBaseline = "alphabetic";
}
