const quote = 0x22;
const backslash = 0x5c;

/** The offset of the first byte from `at` that is not JSON whitespace. */
export function skipSpace(text: Buffer, at: number): number {
  let next = at;
  for (
    let byte = text[next];
    byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
    byte = text[next]
  )
    next += 1;
  return next;
}

/** The end of the string that starts at `at`; -1 when it is not terminated. */
export function skipString(text: Buffer, at: number): number {
  let end = text.indexOf(quote, at + 1);
  while (end >= 0) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
    end = text.indexOf(quote, end + 1);
  }
  return -1;
}

/**
 * The end of the value that starts at `at`; -1 when there is none or it is incomplete. Brackets and braces are only
 * counted.
 */
export function skipValue(text: Buffer, at: number): number {
  const first = text[at];
  if (first === quote) return skipString(text, at);
  if (first === 0x7b || first === 0x5b) return skipNested(text, at);
  let end = at;
  // Numbers, true, false and null end at a comma, bracket, brace or whitespace.
  for (let byte = text[end]; byte !== undefined && isScalarByte(byte); byte = text[end]) end += 1;
  return end > at ? end : -1;
}

const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x2d ||
  byte === 0x2b ||
  byte === 0x2e ||
  byte === 0x45;

function skipNested(text: Buffer, at: number): number {
  let depth = 0;
  for (let next = at; next < text.length; next += 1) {
    const byte = text[next];
    if (byte === quote) {
      next = skipString(text, next) - 1;
      if (next < 0) return -1;
    } else if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
      if (depth === 0) return next + 1;
    }
  }
  return -1;
}
