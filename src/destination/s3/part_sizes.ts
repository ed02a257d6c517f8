const partBytesMaximum = 64 * 1024 * 1024;
/** After this many parts the next step of size begins. */
const partsPerStep = 128;

/** S3's own limit on the number of a part. */
export const partNumberMaximum = 10_000;

/**
 * How many bytes a part gathers before it is sent: `first` for the first ones, then more by steps, up to 64 MiB, so
 * that small files show progress and large ones stay within the 10,000 parts of an upload.
 */
export const partBytes = (position: number, first: number): number =>
  Math.max(first, Math.min(partBytesMaximum, first * (1 + Math.floor(position / partsPerStep))));
