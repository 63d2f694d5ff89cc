// @ts-check
/** What a <log-tail> shows of a log: pages side by side, each in a span, and not more of them than a browser bears. */
import { ansi } from "./log-text.js";

/** How many bytes are shown at most; then the pages at the other end go. */
const MOST = 1_048_576;

/** @typedef {{text: string, offset: number, next_offset: number, size: number, left_out?: number}} Page */

export class LogPages {
  /** Which bytes are shown, of how many. */
  first = 0; next = 0; size = 0;

  /** @param {HTMLElement} box @param {HTMLElement} earlier stands before the pages @param {HTMLElement} later after them */
  constructor(box, earlier, later) {
    this.box = box;
    this.earlier = earlier;
    this.later = later;
  }

  get isAtEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
  }

  get isFull() {
    return this.next - this.first >= MOST;
  }

  /** Tell whether so much was written after what is shown that nothing of it would stay. @param {number} size */
  isFarBehind(size) {
    return size - this.next > MOST;
  }

  /** Show one page in place of all. @param {Page} page */
  show(page) {
    this.box.replaceChildren(this.earlier, this.later);
    this.first = page.offset;
    this.append(page);
  }

  /** @param {Page} page */
  append(page) {
    this.later.before(written(page));
    this.next = page.next_offset;
    this.size = page.size;
    for (let one = this.earlier.nextElementSibling; this.next - this.first > MOST && one !== this.later.previousElementSibling; one = this.earlier.nextElementSibling) {
      one?.remove();
      this.first = offset(this.earlier.nextElementSibling);
    }
  }

  /** @param {Page} page */
  prepend(page) {
    const height = this.box.scrollHeight;
    this.earlier.after(written(page));
    this.first = page.offset;
    this.box.scrollTop += this.box.scrollHeight - height;
    for (let one = this.later.previousElementSibling; this.next - this.first > MOST && one !== this.earlier.nextElementSibling; one = this.later.previousElementSibling) {
      this.next = offset(one);
      one?.remove();
    }
  }
}

/** @param {Page} page @returns {HTMLSpanElement} */
function written(page) {
  const made = document.createElement("span");
  made.dataset.offset = `${page.offset}`;
  if (page.left_out) made.append(`[${page.left_out} bytes are not kept]\n`);
  made.append(ansi(page.text));
  return made;
}

/** @param {Element | null} page */
const offset = (page) => Number(page?.getAttribute("data-offset"));

/** @param {number} bytes */
export const kilobytes = (bytes) => `${Math.ceil(bytes / 1000).toLocaleString("en")} kB`;

/** Ask for a part of a log. @param {string} source @param {Record<string, string | number>} query @returns {Promise<any>} */
export async function readLog(source, query) {
  const address = new URL(source, location.href);
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, `${value}`);
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`The log cannot be read: ${answer.status}`);
  return answer.json();
}
