"use strict";
// What is known about items: class, text and picture. Texts and pictures may be in the page for some items only.

class Items {
  constructor(data) {
    this.count = data.count;
    this.classNames = data.classes ? data.classes.names : [];
    this.classOf = null;
    if (data.classes) {
      const bytes = bytesOf(data.classes.of);
      this.classOf = this.classNames.length > 256 ? new Uint16Array(bytes.buffer) : bytes;
    }
    this.ids = data.ids;
    this.texts = data.texts || [];
    this.lowerTexts = null; // made by the first search
    this.images = data.images || null;
    this.order = data.order ? new Uint32Array(bytesOf(data.order).buffer) : null;
    this.slots = null;
    if (this.order) {
      this.slots = new Int32Array(this.count).fill(-1);
      this.order.forEach((row, slot) => (this.slots[row] = slot));
    }
    this.sheets = [];
  }

  /** Load the pictures, which are in the page already. */
  async load() {
    if (!this.images) return;
    this.sheets = this.images.sheets.map((address) => Object.assign(new Image(), { src: address }));
    await Promise.all(this.sheets.map((sheet) => sheet.decode()));
  }

  slot(row) {
    return this.slots ? this.slots[row] : row;
  }

  rowOf(slot) {
    return this.order ? this.order[slot] : slot;
  }

  /** What a row is called: by its id, or by its number if the page has no ids. */
  name(row) {
    return `item ${this.ids ? this.ids[row] : row}`;
  }

  className(row) {
    return this.classOf ? this.classNames[this.classOf[row]] : null;
  }

  /** The text of a row; null if it is not in the page. */
  text(row) {
    const slot = this.slot(row);
    return slot >= 0 && slot < this.texts.length ? this.texts[slot] : null;
  }

  /** A canvas with the picture of a row; null if it is not in the page. */
  picture(row) {
    const slot = this.slot(row);
    if (!this.images || slot < 0 || slot >= this.images.count) return null;
    const { width, height, columns } = this.images;
    const place = slot % (columns * columns);
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `picture of ${this.name(row)}`);
    const from = [(place % columns) * width, Math.floor(place / columns) * height];
    const sheet = this.sheets[Math.floor(slot / (columns * columns))];
    canvas.getContext("2d").drawImage(sheet, ...from, width, height, 0, 0, width, height);
    return canvas;
  }

  /** A sentence about a row, for people who hear the page. */
  said(row) {
    return [this.name(row).replace("i", "I"), this.className(row), this.text(row)].filter((part) => part !== null).join(", ");
  }

  /** Rows whose text holds every word, in parts of words too. */
  search(words) {
    if (!this.lowerTexts) this.lowerTexts = this.texts.map((text) => text.toLowerCase());
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [];
    if (!wanted.length) return rows;
    this.lowerTexts.forEach((text, slot) => {
      if (wanted.every((word) => text.includes(word))) rows.push(this.rowOf(slot));
    });
    return rows.sort((a, b) => a - b);
  }

  /** Fill a button or a heading with what is known about a row. */
  show(parent, row, note) {
    const about = document.createElement("span");
    about.className = "about";
    const line = (kind, text) => {
      if (text === null || text === undefined) return;
      about.append(Object.assign(document.createElement("span"), { className: kind, textContent: text }));
    };
    line("note", note);
    line("class", this.className(row));
    line("text", this.text(row));
    line("number", this.name(row));
    parent.replaceChildren(...[this.picture(row), about].filter(Boolean));
  }
}
