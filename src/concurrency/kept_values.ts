import { BoundedMap } from './bounded_map.ts';

/** Values that rarely change, by key. A caller that finds that one may be wrong drops it. */
interface KeptValues<Value> {
  /** The value of a key, unless it is too old. */
  get(key: string): Value | undefined;
  /** The value of a key, read if it is missing or too old. */
  read(key: string, read: () => Promise<Value>): Promise<Value>;
  drop(key: string): void;
}

/** How long a value is taken to be as it was read, in milliseconds. */
const maxAgeMs = 60_000;
/** Bounds the memory of a process. */
const maxValues = 1_000;

/** Keeps values for a minute. @param now a clock in milliseconds */
export function createKeptValues<Value>(now: () => number = () => performance.now()): KeptValues<Value> {
  const kept = new BoundedMap<string, { readonly value: Value; readonly readAt: number }>(maxValues);
  const get = (key: string): Value | undefined => {
    const found = kept.get(key);
    return found && now() - found.readAt < maxAgeMs ? found.value : undefined;
  };
  return {
    get,
    read: async (key, read) => {
      const found = get(key);
      if (found !== undefined) return found;
      // Before the read, however long it takes.
      const readAt = now();
      const value = await read();
      kept.set(key, { value, readAt });
      return value;
    },
    drop: (key) => {
      kept.delete(key);
    },
  };
}
