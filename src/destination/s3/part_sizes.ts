const maxPartBytes = 64 * 1024 * 1024;
/** The part size increases after this many parts. */
const partsPerStep = 128;

/** S3's limit of the part number. */
export const maxPartNumber = 10_000;

/**
 * The size of a part in bytes: `first` at the start, then increasing in steps up to 64 MiB. Small files show
 * progress, and large files need at most 10,000 parts.
 */
export const partBytes = (position: number, first: number): number =>
  Math.max(first, Math.min(maxPartBytes, first * (1 + Math.floor(position / partsPerStep))));
