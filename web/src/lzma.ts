/** Unpacks what Python's `lzma.FORMAT_ALONE` packs: WebAssembly takes seven tenths of the room that deflate gives it. */

const [TOP, BITS, MOVE] = [1 << 24, 11, 5];
const STATES = 12;
/** Distances below have all their bits modelled. */
const MODELLED = 14;

/** The probabilities of bits that were seen; 2^11 is certain. */
function probabilities(count: number): Uint16Array {
  return new Uint16Array(count).fill(1 << (BITS - 1));
}

/** Bits of a range coder, each by the probability that it has had until then. */
class Bits {
  private range = 0xffffffff;
  private code = 0;

  constructor(
    private readonly from: Uint8Array,
    private at: number,
  ) {
    for (let n = 0; n < 5; n++) this.code = ((this.code << 8) | this.next()) >>> 0;
  }

  private next(): number {
    const byte = this.from[this.at++];
    if (byte === undefined) throw new Error("the simulator is incomplete");
    return byte;
  }

  bit(of: Uint16Array, place: number): 0 | 1 {
    const seen = of[place] as number;
    const bound = (this.range >>> BITS) * seen;
    const isOne = this.code >= bound;
    if (isOne) {
      this.range -= bound;
      this.code -= bound;
      of[place] = seen - (seen >>> MOVE);
    } else {
      this.range = bound;
      of[place] = seen + (((1 << BITS) - seen) >>> MOVE);
    }
    if (this.range < TOP) {
      this.range = (this.range << 8) >>> 0;
      this.code = ((this.code << 8) | this.next()) >>> 0;
    }
    return isOne ? 1 : 0;
  }

  /** Bits that are as likely as not. */
  even(count: number): number {
    let value = 0;
    for (; count > 0; count--) {
      this.range >>>= 1;
      const isOne = this.code >= this.range;
      if (isOne) this.code -= this.range;
      value = (value << 1) | (isOne ? 1 : 0);
      if (this.range < TOP) {
        this.range = (this.range << 8) >>> 0;
        this.code = ((this.code << 8) | this.next()) >>> 0;
      }
    }
    return value >>> 0;
  }

  /** A number of so many bits, the highest first, each modelled by those before. */
  tree(of: Uint16Array, first: number, count: number): number {
    let node = 1;
    for (let n = 0; n < count; n++) node = (node << 1) | this.bit(of, first + node);
    return node - (1 << count);
  }

  /** The same, the lowest first. */
  reversed(of: Uint16Array, first: number, count: number): number {
    let [node, value] = [1, 0];
    for (let n = 0; n < count; n++) {
      const bit = this.bit(of, first + node);
      node = (node << 1) | bit;
      value |= bit << n;
    }
    return value;
  }
}

/** The length of a match less 2, of one of three classes. */
class Lengths {
  private readonly choice = probabilities(2);
  private readonly low = probabilities(16 << 3);
  private readonly middle = probabilities(16 << 3);
  private readonly high = probabilities(256);

  read(bits: Bits, place: number): number {
    if (!bits.bit(this.choice, 0)) return bits.tree(this.low, place << 3, 3);
    if (!bits.bit(this.choice, 1)) return 8 + bits.tree(this.middle, place << 3, 3);
    return 16 + bits.tree(this.high, 0, 8);
  }
}

/**
 * Bytes that were packed by LZMA (Igor Pavlov's specification, 2015). Throws where they are cut off or are none.
 */
export function unpackedOf(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new DataView(packed.buffer, packed.byteOffset, 13);
  const options = head.getUint8(0);
  const [lc, lp, pb] = [options % 9, Math.floor(options / 9) % 5, Math.floor(options / 45)];
  const told = head.getBigUint64(5, true);
  // Python leaves the length open, and ends with a mark.
  let out = new Uint8Array(told < 1n << 32n ? Number(told) : packed.length * 5);
  const bits = new Bits(packed, 13);
  const literals = probabilities(0x300 << (lc + lp));
  const [isMatch, isRepeatLong] = [probabilities(STATES << 4), probabilities(STATES << 4)];
  const [isRepeat, isFirst] = [probabilities(STATES), probabilities(STATES)];
  const [isSecond, isThird] = [probabilities(STATES), probabilities(STATES)];
  const [slots, special, aligned] = [probabilities(4 << 6), probabilities(1 + (1 << (MODELLED / 2)) - MODELLED), probabilities(16)];
  const [lengths, repeats] = [new Lengths(), new Lengths()];
  let [state, at] = [0, 0];
  let [rep0, rep1, rep2, rep3] = [0, 0, 0, 0];

  const literal = () => {
    const before = at ? (out[at - 1] as number) : 0;
    const first = 0x300 * (((at & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
    let symbol = 1;
    if (state >= 7) {
      let match = out[at - rep0 - 1] as number;
      while (symbol < 0x100) {
        const matched = (match >> 7) & 1;
        match <<= 1;
        const bit = bits.bit(literals, first + ((1 + matched) << 8) + symbol);
        symbol = (symbol << 1) | bit;
        if (matched !== bit) break;
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | bits.bit(literals, first + symbol);
    out[at++] = symbol & 0xff;
    state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
  };
  const distance = (length: number) => {
    const slot = bits.tree(slots, Math.min(length, 3) << 6, 6);
    if (slot < 4) return slot;
    const count = (slot >> 1) - 1;
    const base = (2 | (slot & 1)) << count;
    if (slot < MODELLED) return base + bits.reversed(special, base - slot, count);
    return base + bits.even(count - 4) * 16 + bits.reversed(aligned, 0, 4);
  };
  for (;;) {
    if (at + 274 > out.length) {
      if (told < 1n << 32n && at >= out.length) return out;
      if (told >= 1n << 32n) {
        const wider = new Uint8Array(2 * out.length);
        wider.set(out);
        out = wider;
      }
    }
    const place = at & ((1 << pb) - 1);
    if (!bits.bit(isMatch, (state << 4) + place)) {
      literal();
      continue;
    }
    let length;
    if (!bits.bit(isRepeat, state)) {
      [rep3, rep2, rep1] = [rep2, rep1, rep0];
      length = lengths.read(bits, place);
      state = state < 7 ? 7 : 10;
      rep0 = distance(length) >>> 0;
      if (rep0 === 0xffffffff) return out.slice(0, at);
    } else {
      if (!bits.bit(isFirst, state)) {
        if (!bits.bit(isRepeatLong, (state << 4) + place)) {
          state = state < 7 ? 9 : 11;
          out[at] = out[at - rep0 - 1] as number;
          at++;
          continue;
        }
      } else if (!bits.bit(isSecond, state)) [rep0, rep1] = [rep1, rep0];
      else if (!bits.bit(isThird, state)) [rep0, rep1, rep2] = [rep2, rep0, rep1];
      else [rep0, rep1, rep2, rep3] = [rep3, rep0, rep1, rep2];
      length = repeats.read(bits, place);
      state = state < 7 ? 8 : 11;
    }
    if (rep0 >= at) throw new Error("the simulator is incomplete");
    for (let n = length + 2; n > 0; n--, at++) out[at] = out[at - rep0 - 1] as number;
  }
}
