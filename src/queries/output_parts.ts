/** Bytes of a part. Copying one takes about a millisecond, while copying 32 MiB would stop the server. */
const partSize = 2 ** 20;

/** Splits an output in UTF-8 into parts that are text each. At least one. */
export function outputParts(output: Uint8Array): readonly Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < output.length || parts.length === 0;) {
    let end = Math.min(start + partSize, output.length);
    while (end < output.length && isContinuation(output[end])) end -= 1;
    parts.push(output.subarray(start, end));
    start = end;
  }
  return parts;
}

/** Whether a byte is not the first one of a character. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;
