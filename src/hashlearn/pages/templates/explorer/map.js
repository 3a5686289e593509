"use strict";
// The map: items as points on a canvas, colored by class, with the chosen item and its neighbors on top.

const MARGIN = 14; // pixels between the points and the edge
const LARGEST_PLACE = 65535;
const MOST_COLORS = 24;
const MOST_NAMES = 30; // of classes that are written on the map

class CollectionMap {
  constructor(canvas, places, classOf, classNames) {
    this.canvas = canvas;
    this.places = places;
    this.classOf = classOf;
    this.classNames = classNames;
    this.count = places.length / 2;
    this.sortByClass();
    this.items = document.createElement("canvas");
    this.highlighted = -1; // a class
    this.resize();
  }

  /** Rows by class, so that the color of the pen changes rarely; ``starts`` says where each class begins. */
  sortByClass() {
    this.starts = new Uint32Array(this.classNames.length + 2);
    for (let row = 0; row < this.count; row++) this.starts[this.classAt(row) + 1]++;
    for (let group = 1; group < this.starts.length; group++) this.starts[group] += this.starts[group - 1];
    const next = this.starts.slice();
    this.byClass = new Uint32Array(this.count);
    for (let row = 0; row < this.count; row++) this.byClass[next[this.classAt(row)]++] = row;
  }

  /** Take the size that the page gives the canvas, and the colors of the page. */
  resize() {
    const box = this.canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    for (const canvas of [this.canvas, this.items]) {
      canvas.width = Math.round(box.width * scale);
      canvas.height = Math.round(box.height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(name).trim();
    this.ink = named("--ink");
    this.paper = named("--paper");
    this.dim = named("--line");
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const period = Math.min(this.classNames.length, MOST_COLORS);
    this.colors = this.classNames.map((_, i) => {
      const lightness = (dark ? 66 : 42) + (i % 2 ? 6 : -6);
      return `hsl(${Math.round((360 * (i % period)) / period + 210) % 360} 68% ${lightness}%)`;
    });
    if (!this.classOf) this.colors = [named("--s1")];
    this.size = this.count < 3000 ? 5 : this.count < 20000 ? 3 : 2;
    this.drawItems();
  }

  x(row) {
    return MARGIN + (this.places[2 * row] / LARGEST_PLACE) * (this.width - 2 * MARGIN);
  }

  y(row) {
    return MARGIN + (1 - this.places[2 * row + 1] / LARGEST_PLACE) * (this.height - 2 * MARGIN);
  }

  classAt(row) {
    return this.classOf ? this.classOf[row] : 0;
  }

  /** All points, on a canvas of their own, so that a new choice need not draw them again. */
  drawItems() {
    const pen = this.items.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    const { highlighted, size } = this;
    if (highlighted >= 0) this.drawPoints(pen, (row) => this.classAt(row) !== highlighted, size, this.dim);
    this.drawPoints(pen, (row) => highlighted < 0 || this.classAt(row) === highlighted, size);
  }

  drawPoints(pen, shown, size, color) {
    let last = -1;
    if (color) pen.fillStyle = color;
    for (const row of this.byClass) {
      if (!shown(row)) continue;
      const group = this.classAt(row);
      if (!color && group !== last) pen.fillStyle = this.colors[(last = group)];
      pen.fillRect(this.x(row) - size / 2, this.y(row) - size / 2, size, size);
    }
  }

  /** The map with a chosen row, its neighbors, the rows within the radius, and the row under the cursor. */
  draw({ chosen, neighbors, distance, radius, cursor, marked }) {
    if (!this.items.width || !this.items.height) return; // the page is not visible yet
    const pen = this.canvas.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    pen.globalAlpha = 0.55;
    pen.drawImage(this.items, 0, 0, this.width, this.height);
    pen.globalAlpha = 1;
    this.drawPoints(pen, (row) => distance[row] <= radius, this.size + 1);
    this.writeNames(pen);
    pen.lineWidth = 1;
    pen.strokeStyle = this.ink;
    pen.globalAlpha = 0.5;
    pen.beginPath();
    for (const row of neighbors) {
      pen.moveTo(this.x(chosen), this.y(chosen));
      pen.lineTo(this.x(row), this.y(row));
    }
    pen.stroke();
    pen.globalAlpha = 1;
    for (const row of neighbors) this.ring(pen, row, 4, 1);
    this.ring(pen, chosen, 9, 3);
    for (const row of [cursor, marked]) {
      if (row >= 0 && row !== chosen) this.ring(pen, row, 7, 2);
    }
  }

  ring(pen, row, radius, width) {
    for (const [color, wide] of [[this.paper, width + 2], [this.ink, width]]) {
      pen.beginPath();
      pen.arc(this.x(row), this.y(row), radius, 0, 2 * Math.PI);
      pen.strokeStyle = color;
      pen.lineWidth = wide;
      pen.stroke();
    }
  }

  /** The name of each class at the median of its points, if there are few classes. */
  writeNames(pen) {
    if (!this.classOf || this.classNames.length > MOST_NAMES) return;
    if (!this.centers) this.centers = this.classNames.map((_, group) => this.center(group));
    pen.font = "600 13px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    this.centers.forEach(([x, y], group) => {
      if (this.highlighted >= 0 && this.highlighted !== group) return;
      const name = shortened(this.classNames[group], 18);
      const half = pen.measureText(name).width / 2 + 4;
      const at = [
        Math.max(half, Math.min(this.width - half, MARGIN + x * (this.width - 2 * MARGIN))),
        MARGIN + (1 - y) * (this.height - 2 * MARGIN),
      ];
      pen.strokeStyle = this.paper;
      pen.strokeText(name, ...at);
      pen.fillStyle = this.ink;
      pen.fillText(name, ...at);
    });
  }

  center(group) {
    const rows = this.byClass.subarray(this.starts[group], this.starts[group + 1]);
    return [0, 1].map((axis) => {
      const sorted = rows.map((row) => this.places[2 * row + axis]).sort();
      return sorted[sorted.length >> 1] / LARGEST_PLACE;
    });
  }

  /** The row whose point is nearest to a place on the canvas. */
  rowAt(x, y) {
    return this.best((row) => (this.x(row) - x) ** 2 + (this.y(row) - y) ** 2);
  }

  /** The nearest row in a direction from another one, within 45 degrees; the same row if there is none. */
  rowBeside(from, right, down) {
    const x = this.x(from);
    const y = this.y(from);
    const found = this.best((row) => {
      const along = (this.x(row) - x) * right + (this.y(row) - y) * down;
      const across = Math.abs((this.x(row) - x) * down) + Math.abs((this.y(row) - y) * right);
      return along > 0.5 && across <= along ? along + 2 * across : Infinity;
    });
    return found < 0 ? from : found;
  }

  best(cost) {
    let least = Infinity;
    let found = -1;
    for (let row = 0; row < this.count; row++) {
      const here = cost(row);
      if (here < least) [least, found] = [here, row];
    }
    return found;
  }
}

/** A text of at most ``most`` letters. */
function shortened(text, most) {
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}
