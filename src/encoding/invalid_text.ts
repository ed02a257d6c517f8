import { isUtf8 } from 'node:buffer';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import type { Rows } from './rows.ts';

/**
 * The rows without those that hold a text that is not UTF-8, which would make the whole file unreadable. PostgreSQL keeps
 * such texts out of databases in UTF8, but damaged storage gives out what it holds.
 *
 * A block that is not whole is left to the encoders, which say what is wrong with it.
 * @param onBadValue takes note of a row that is left out, or throws
 */
export function withoutInvalidText(given: Rows, onBadValue: (bad: UnrepresentableValue) => void): Rows {
  const { block, rows, columns } = given;
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const fields = columns.map(({ name, type }) => ({ name, isText: type === 'text' || type === 'json' }));
  const kept: Buffer[] = [];
  let keptUntil = 0;
  let left = rows;
  for (let at = 0; at < block.length;) {
    const rowAt = at;
    at += 2;
    let badColumn: string | undefined;
    for (const { name, isText } of fields) {
      if (at + 4 > block.length) return given;
      const length = view.getInt32(at);
      const start = at + 4;
      at = start + Math.max(0, length);
      if (at > block.length) return given;
      if (isText && !isAscii(view, start, at) && !isUtf8(block.subarray(start, at))) badColumn ??= name;
    }
    if (badColumn === undefined) continue;
    onBadValue({ rowAt, column: badColumn, reason: 'holds bytes that are not UTF-8' });
    kept.push(block.subarray(keptUntil, rowAt));
    keptUntil = at;
    left -= 1;
  }
  if (left === rows) return given;
  return { block: Buffer.concat([...kept, block.subarray(keptUntil)]), rows: left, columns };
}

/** Nearly all texts are, and this is far quicker than a call into Node for each. */
function isAscii(view: DataView, start: number, end: number): boolean {
  let bits = 0;
  let at = start;
  for (; at + 16 <= end; at += 16) bits |= bitsOf16(view, at);
  if (at < end && end - start >= 16) bits |= bitsOf16(view, end - 16);
  else for (; at < end; at += 1) bits |= view.getUint8(at);
  return (bits & 0x8080_8080) === 0;
}

const bitsOf16 = (view: DataView, at: number): number =>
  view.getInt32(at, true) |
  view.getInt32(at + 4, true) |
  view.getInt32(at + 8, true) |
  view.getInt32(at + 12, true);
