import { hash } from 'node:crypto';

/**
 * Finds repeated ids with eight bytes of memory per id. It compares 64-bit hashes, so its results are candidates that
 * have to be checked.
 */
export interface RepeatedIds {
  add(id: string): void;
  /**
   * Returns a predicate for candidates: whether the hash of an id was added more than once. Null when there are none.
   */
  findRepeated(): ((id: string) => boolean) | null;
}

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
    findRepeated() {
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
