import type { DataInterval } from './intervals.ts';

/** The hash of a row's id: PostgreSQL's function and its seed. Events hash their uuid, persons their distinct id. */
export type FingerprintHash = 'uuid_hash_extended/0' | 'hashtextextended/0';

/** The hash of a model's row ids. */
export const fingerprintHashOf = (model: 'events' | 'persons'): FingerprintHash =>
  model === 'events' ? 'uuid_hash_extended/0' : 'hashtextextended/0';

/** The rows of an interval that were inserted in one part of it. */
export interface FingerprintBucket {
  /** Counts the buckets from the interval's start, from 0. */
  readonly index: number;
  readonly rows: number;
  /** Sum of the hashes of the rows' ids modulo 2^64, as a decimal number without a sign. */
  readonly sum: string;
}

/**
 * Which rows an interval has, by bucket of insertion time. It distinguishes sets of rows that a count cannot: a deleted
 * row and a late one do not cancel out. It says nothing about the contents of the rows. Fingerprints of disjoint sets of
 * rows can be added.
 */
export interface Fingerprint {
  readonly hash: FingerprintHash;
  /** Length of a bucket in milliseconds. */
  readonly width_ms: number;
  /** The buckets that have rows: see `encodeBuckets`. Every run stores several fingerprints for years. */
  readonly encoded_buckets: string;
  /**
   * Set if these are all events of the project, because the selection depends on the current state of persons: the same
   * events may be selected now and not later. It can only be compared with another fingerprint of all events.
   */
  readonly all_events?: true | undefined;
  /**
   * Set if each hash is of an id together with its insertion time and versions: a person that changes within a bucket changes
   * it. It can only be compared with another one of this kind.
   */
  readonly of_states?: true | undefined;
}

/** An interval has at most this many buckets. */
export const maxFingerprintBuckets = 64;

/**
 * Encodes the buckets that have rows, in the order of their indexes, as Base64. Each takes about ten bytes: how many buckets
 * without rows precede it and its number of rows, both as LEB128 (seven bits per byte, the lowest first), and its sum as 8
 * bytes, the highest first.
 */
export const encodeBuckets = (buckets: readonly FingerprintBucket[]): string =>
  encodeBits(buckets.map(({ index, rows, sum }) => ({ index, rows, bits: BigInt(sum) })));

/** A bucket whose sum is a number. */
interface BucketBits {
  readonly index: number;
  readonly rows: number;
  readonly bits: bigint;
}

/** The most bytes that a bucket takes: two numbers of up to eight bytes, and its sum. */
const maxBucketBytes = 24;

function encodeBits(buckets: readonly BucketBits[]): string {
  const bytes = Buffer.allocUnsafe(buckets.length * maxBucketBytes);
  let at = 0;
  const append = (value: number): void => {
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80), at += 1) bytes[at] = (rest % 0x80) | 0x80;
    bytes[at] = rest;
    at += 1;
  };
  let next = 0;
  for (const { index, rows, bits } of buckets.toSorted((one, other) => one.index - other.index)) {
    if (rows === 0) continue;
    append(index - next);
    append(rows);
    next = index + 1;
    at = bytes.writeBigUInt64BE(BigInt.asUintN(64, bits), at);
  }
  return bytes.toString('base64', 0, at);
}

/** The buckets of a fingerprint that have rows, by index. @throws RangeError when they are cut off */
export const bucketsOf = (fingerprint: Pick<Fingerprint, 'encoded_buckets'>): FingerprintBucket[] =>
  decodeBits(fingerprint).map(({ index, rows, bits }) => ({ index, rows, sum: bits.toString() }));

function decodeBits({ encoded_buckets }: Pick<Fingerprint, 'encoded_buckets'>): BucketBits[] {
  const bytes = Buffer.from(encoded_buckets, 'base64');
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  const buckets: BucketBits[] = [];
  let next = 0;
  while (at < bytes.length) {
    const index = next + read();
    const rows = read();
    buckets.push({ index, rows, bits: bytes.readBigUInt64BE(at) });
    at += 8;
    next = index + 1;
  }
  return buckets;
}

/**
 * The bucket length of an interval in milliseconds. It divides the intervals of schedules evenly (a minute into 60
 * buckets, an hour into 64), so that one statement can read several adjacent ones.
 */
export function bucketWidthMs({ start, end }: DataInterval): number {
  const length = Math.max(1, new Date(end).getTime() - new Date(start).getTime());
  for (let buckets = maxFingerprintBuckets; buckets > maxFingerprintBuckets / 2; buckets -= 1)
    if (length % buckets === 0) return length / buckets;
  return Math.ceil(length / maxFingerprintBuckets);
}

/** The fingerprint of no rows. */
export const emptyFingerprint = (interval: DataInterval, hash: FingerprintHash): Fingerprint => ({
  hash,
  width_ms: bucketWidthMs(interval),
  encoded_buckets: '',
});

/** Whether two fingerprints have the same hash and buckets, so that they can be compared and added. */
export const areComparable = (one: Fingerprint, other: Fingerprint): boolean =>
  one.hash === other.hash &&
  one.width_ms === other.width_ms &&
  one.all_events === other.all_events &&
  one.of_states === other.of_states;

/**
 * Adds fingerprints of disjoint sets of rows of one interval.
 * @throws RangeError when they are not comparable
 */
export const addFingerprints = (first: Fingerprint, ...more: readonly Fingerprint[]): Fingerprint =>
  combine(
    first,
    more.map((fingerprint) => ({ fingerprint, sign: 1 })),
  );

/** The fingerprint of a set of rows without some of them. @throws RangeError when they are not comparable */
export const subtractFingerprint = (whole: Fingerprint, part: Fingerprint): Fingerprint =>
  combine(whole, [{ fingerprint: part, sign: -1 }]);

/** Adds or subtracts bucket by bucket. Buckets without rows are left out. */
function combine(
  first: Fingerprint,
  more: readonly { readonly fingerprint: Fingerprint; readonly sign: 1 | -1 }[],
): Fingerprint {
  if (!more.every(({ fingerprint }) => areComparable(first, fingerprint)))
    throw new RangeError('The fingerprints are not comparable.');
  const others = more.filter(({ fingerprint }) => fingerprint.encoded_buckets !== '');
  if (others.length === 0) return first;
  const sums = new Map<number, BucketBits>();
  for (const { fingerprint, sign } of [{ fingerprint: first, sign: 1 }, ...others])
    for (const { index, rows, bits } of decodeBits(fingerprint)) {
      const bucket = sums.get(index);
      sums.set(index, {
        index,
        rows: (bucket?.rows ?? 0) + sign * rows,
        bits: (bucket?.bits ?? 0n) + BigInt(sign) * bits,
      });
    }
  return { ...first, encoded_buckets: encodeBits([...sums.values()].filter(({ rows }) => rows > 0)) };
}

export const rowsOfFingerprint = (fingerprint: Pick<Fingerprint, 'encoded_buckets'>): number =>
  decodeBits(fingerprint).reduce((sum, { rows }) => sum + rows, 0);

/**
 * Returns the buckets in which two fingerprints differ, by index; null where one of them has no rows.
 * @throws RangeError when they are not comparable
 */
export function differingBuckets(one: Fingerprint, other: Fingerprint) {
  if (!areComparable(one, other)) throw new RangeError('The fingerprints are not comparable.');
  const [ones, others] = [bucketsByIndex(one), bucketsByIndex(other)];
  return [...new Set([...ones.keys(), ...others.keys()])]
    .toSorted((left, right) => left - right)
    .map((index) => ({ index, one: ones.get(index) ?? null, other: others.get(index) ?? null }))
    .filter((bucket) => bucket.one?.rows !== bucket.other?.rows || bucket.one?.sum !== bucket.other?.sum);
}

/** Whether two fingerprints are comparable and have the same rows. */
export const haveSameRows = (one: Fingerprint, other: Fingerprint): boolean =>
  areComparable(one, other) && one.encoded_buckets === other.encoded_buckets;

/** The range of insertion time that a bucket covers. The last bucket ends with the interval. */
export function bucketInterval(
  { start, end }: DataInterval,
  { width_ms }: Pick<Fingerprint, 'width_ms'>,
  index: number,
): DataInterval {
  const at = new Date(start).getTime() + index * width_ms;
  const until = Math.min(at + width_ms, new Date(end).getTime());
  return { start: new Date(at).toISOString(), end: new Date(until).toISOString() };
}

/** The ranges of insertion time of buckets, which are in order; adjacent ones are joined. */
export function bucketIntervals(
  interval: DataInterval,
  fingerprint: Pick<Fingerprint, 'width_ms'>,
  indexes: readonly number[],
): DataInterval[] {
  const joined: DataInterval[] = [];
  for (const { start, end } of indexes.map((index) => bucketInterval(interval, fingerprint, index))) {
    const last = joined.at(-1);
    if (last?.end === start) joined[joined.length - 1] = { start: last.start, end };
    else joined.push({ start, end });
  }
  return joined;
}

/** The total of the fingerprints of disjoint sets of rows, all with this hash. Equal totals are of the same rows. */
export const totalOf = (
  hash: FingerprintHash,
  fingerprints: readonly Pick<Fingerprint, 'encoded_buckets'>[],
): Omit<FingerprintBucket, 'index'> & Pick<Fingerprint, 'hash'> => ({
  hash,
  rows: fingerprints.reduce((sum, fingerprint) => sum + rowsOfFingerprint(fingerprint), 0),
  sum: BigInt.asUintN(
    64,
    fingerprints.flatMap(decodeBits).reduce((sum, { bits }) => sum + bits, 0n),
  ).toString(),
});

/** The indexes of the buckets with published rows in which the source differs from them. */
export const bucketsToCompare = (published: Fingerprint, source: Fingerprint): number[] =>
  differingBuckets(published, source).flatMap(({ index, one }) => (one ? [index] : []));

/** How many published rows the buckets of the source lack, in total. A bucket with more rows makes up for no other. */
export function countFewerRows(published: Fingerprint, source: Fingerprint): number {
  const found = bucketsByIndex(source);
  return bucketsOf(published).reduce(
    (sum, { index, rows }) => sum + Math.max(0, rows - (found.get(index)?.rows ?? 0)),
    0,
  );
}

/**
 * Whether exported rows contain every published row: each bucket has the published rows, or the rows that the source had
 * when it was known to contain the published ones.
 */
export function containsPublishedRows(
  exported: Fingerprint,
  published: Fingerprint,
  source: Fingerprint,
): boolean {
  if (!areComparable(exported, published) || !areComparable(exported, source)) return false;
  const [read, proven] = [bucketsByIndex(exported), bucketsByIndex(source)];
  return bucketsOf(published).every(
    (bucket) =>
      isSame(bucket, read.get(bucket.index)) ||
      isSame(read.get(bucket.index) ?? emptyBucket(bucket.index), proven.get(bucket.index)),
  );
}

/** Replaces buckets of a fingerprint; those without rows are removed. */
export const withBuckets = (
  fingerprint: Fingerprint,
  replacements: ReadonlyMap<number, FingerprintBucket>,
): Fingerprint => ({
  ...fingerprint,
  encoded_buckets: encodeBuckets([...new Map([...bucketsByIndex(fingerprint), ...replacements]).values()]),
});

const bucketsByIndex = (fingerprint: Fingerprint): ReadonlyMap<number, FingerprintBucket> =>
  new Map(bucketsOf(fingerprint).map((bucket) => [bucket.index, bucket]));

const emptyBucket = (index: number): FingerprintBucket => ({ index, rows: 0, sum: '0' });

const isSame = (one: FingerprintBucket, other: FingerprintBucket | undefined): boolean =>
  one.rows === other?.rows && one.sum === other.sum;
