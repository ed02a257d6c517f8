import { hash } from 'node:crypto';

/**
 * Finds ids that come more than once, in eight bytes for each: by 64 bits of a hash, so an id that it finds has to be
 * looked at again.
 */
export interface RepeatedIds {
  add(id: string): void;
  /** Says of an id whether one of its hash was added more than once; null when none was. */
  repeated(): ((id: string) => boolean) | null;
}

/** Begins with no id; takes eight bytes for each that is added. */
export function createRepeatedIds(): RepeatedIds {
  let hashes = new BigUint64Array(1_024);
  let length = 0;
  return {
    add(id) {
      if (length === hashes.length) {
        const larger = new BigUint64Array(hashes.length * 2);
        larger.set(hashes);
        hashes = larger;
      }
      hashes[length] = hashOf(id);
      length += 1;
    },
    repeated() {
      const ordered = hashes.subarray(0, length).sort();
      const found = new Set<bigint>();
      for (let index = 1; index < length; index += 1) {
        const value = ordered[index];
        if (value !== undefined && value === ordered[index - 1]) found.add(value);
      }
      return found.size === 0 ? null : (id) => found.has(hashOf(id));
    },
  };
}

const hashOf = (id: string): bigint => hash('sha1', id, 'buffer').readBigUInt64LE();
