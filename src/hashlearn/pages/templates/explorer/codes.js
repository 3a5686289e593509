"use strict";
// Packed codes and Hamming distances. The first bit of a code is the highest bit of its first byte.

/** The bytes of a base64 text. */
function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Codes as rows of 32-bit words. A query compares one of them with all others by their first bits. */
class Codes {
  constructor(bytes, count, nBits) {
    this.count = count;
    this.nBits = nBits;
    this.bytesPerRow = Math.ceil(nBits / 8);
    this.words = Math.ceil(this.bytesPerRow / 4);
    this.bytes = bytes;
    const padded = this.bytesPerRow % 4 ? this.padded(bytes) : bytes;
    this.data = new Uint32Array(padded.buffer);
    this.distance = new Uint16Array(count);
    this.histogram = new Uint32Array(nBits + 1);
    this.row = -1;
  }

  padded(bytes) {
    const wide = new Uint8Array(this.count * this.words * 4);
    for (let row = 0, from = 0; row < this.count; row++) {
      for (let to = row * this.words * 4, end = to + this.bytesPerRow; to < end; ) wide[to++] = bytes[from++];
    }
    return wide;
  }

  bit(row, place) {
    return (this.bytes[row * this.bytesPerRow + (place >> 3)] >> (7 - (place & 7))) & 1;
  }

  /** Words that keep the first ``used`` bits. Counts of bits do not depend on the order of bytes in a word. */
  mask(used) {
    const bytes = new Uint8Array(this.words * 4);
    for (let i = 0; i < bytes.length; i++) bytes[i] = 0xff00 >> Math.max(0, Math.min(8, used - 8 * i));
    return new Uint32Array(bytes.buffer);
  }

  /** Distances of all rows to ``row`` by the first ``used`` bits, and how many rows have each distance. */
  measure(row, used) {
    const { data, words, distance, histogram, count } = this;
    const mask = this.mask(used);
    const query = data.slice(row * words, (row + 1) * words);
    histogram.fill(0);
    for (let other = 0, at = 0; other < count; other++) {
      let found = 0;
      for (let word = 0; word < words; word++) {
        let x = (data[at++] ^ query[word]) & mask[word];
        x -= (x >>> 1) & 0x55555555;
        x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
        found += Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
      }
      distance[other] = found;
      histogram[found]++;
    }
    histogram[0]--; // the row itself
    this.row = row;
  }

  /** The ``k`` nearest other rows after `measure`, nearest first, equal distances by row: a counting sort. */
  nearest(k) {
    const wanted = Math.min(k, this.count - 1);
    const starts = new Uint32Array(this.nBits + 2);
    let last = 0;
    while (last <= this.nBits) {
      starts[last + 1] = starts[last] + this.histogram[last];
      if (starts[last + 1] >= wanted) break;
      last++;
    }
    const rows = new Array(wanted);
    for (let row = 0; row < this.count; row++) {
      const found = this.distance[row];
      if (found > last || row === this.row) continue;
      const slot = starts[found]++;
      if (slot < wanted) rows[slot] = row;
    }
    return rows;
  }

  /** How many other rows are within ``radius`` bits after `measure`. */
  within(radius) {
    let total = 0;
    for (let bits = 0; bits <= radius; bits++) total += this.histogram[bits];
    return total;
  }
}
