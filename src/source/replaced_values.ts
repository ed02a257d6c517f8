/**
 * Values that stand for others in a block: those of a row that is wider than EXPORTD_MAX_ROW_SIZE, so that memory never holds such
 * a row, and those that PostgreSQL cannot read. They are neither UTF-8 nor of the size of another type: the encoders find them
 * like any value that a format cannot represent, and `on_bad_row` decides.
 */

/** The start of what replaces a value. No text or JSON of PostgreSQL starts with this byte. */
const tooWide = Buffer.from('\u00ffexportd/too-wide/', 'latin1');
const unreadable = Buffer.from('\u00ffexportd/unreadable/', 'latin1');

/** Values up to this size stay: keys, by which the row is named and found, and all of a fixed size. */
const maxKeptBytes = 1_024;

/** A value that was replaced, as messages describe it. */
interface ReplacedValue {
  /** The size of the value, in bytes; infinite if PostgreSQL cannot read it. */
  readonly bytes: number;
  /** Why the row cannot be exported, as the end of a sentence about the value's column. */
  readonly reason: string;
}

/** What replaces a value of `bytes` bytes. */
const tooWideValue = (bytes: number, rowBytes: number, maxRowBytes: number): Buffer =>
  Buffer.concat([tooWide, Buffer.from(`${bytes}/${rowBytes}/${maxRowBytes}`)]);

/** What replaces a value that PostgreSQL cannot read. @param problem why not */
export const unreadableValue = (problem: string): Buffer =>
  Buffer.concat([unreadable, Buffer.from(problem).subarray(0, maxKeptBytes - unreadable.length)]);

/** Describes the value at `[start, end)` of a block, if it was replaced. */
export function replacedValue(block: Buffer, start: number, end: number): ReplacedValue | undefined {
  const restAfter = (mark: Buffer): Buffer | undefined => {
    const from = start + mark.length;
    return end >= from && block.compare(mark, 0, mark.length, start, from) === 0
      ? block.subarray(from, end)
      : undefined;
  };
  const problem = restAfter(unreadable);
  if (problem)
    return {
      bytes: Number.POSITIVE_INFINITY,
      reason: `cannot be read by PostgreSQL (${problem.toString()})`,
    };
  const sizes = restAfter(tooWide);
  if (!sizes) return undefined;
  const [bytes = 0, rowBytes = 0, maxRowBytes = 0] = sizes.toString('latin1').split('/').map(Number);
  return {
    bytes,
    reason: `has ${sizeText(bytes)} of a row of ${sizeText(rowBytes)}, which is more than EXPORTD_MAX_ROW_SIZE (${sizeText(maxRowBytes)})`,
  };
}

const mebibyte = 1_048_576;
const sizeText = (bytes: number): string =>
  bytes < mebibyte
    ? `${Math.ceil(bytes / 1_024)} KiB`
    : `${(bytes / mebibyte).toFixed(1).replace('.0', '')} MiB`;

/** A tuple of a binary COPY that arrives in pieces, and whose long values are replaced. */
export interface NarrowedTuple {
  write(bytes: Buffer, start: number, end: number): void;
  /** The tuple, once all of it was written. */
  finish(): Buffer;
}

/** @param rowBytes the size of the whole tuple */
export function narrowTuple(rowBytes: number, maxRowBytes: number): NarrowedTuple {
  const kept: Buffer[] = [];
  /** The field count of the tuple, or the length of a value: what is read next. */
  let header = Buffer.alloc(2);
  let headerRead = 0;
  /** Bytes of the current value that have not arrived yet, and whether they are kept. */
  let left = 0;
  let isKept = true;

  const endHeader = (): void => {
    const isLength = header.length === 4;
    const length = isLength ? header.readInt32BE(0) : 0;
    isKept = length <= maxKeptBytes;
    left = Math.max(0, length);
    if (isKept) kept.push(header);
    else {
      const value = tooWideValue(length, rowBytes, maxRowBytes);
      const size = Buffer.alloc(4);
      size.writeInt32BE(value.length);
      kept.push(size, value);
    }
    header = Buffer.alloc(4);
    headerRead = 0;
  };

  return {
    write(bytes, start, end) {
      for (let at = start; at < end;)
        if (left > 0) {
          const until = Math.min(end, at + left);
          if (isKept) kept.push(Buffer.from(bytes.subarray(at, until)));
          left -= until - at;
          at = until;
        } else {
          const copied = bytes.copy(header, headerRead, at, Math.min(end, at + header.length - headerRead));
          headerRead += copied;
          at += copied;
          if (headerRead === header.length) endHeader();
        }
    },
    finish: () => Buffer.concat(kept),
  };
}
