/** A bounded set of ids. */
export interface RecentIds {
  has(id: string): boolean;
  add(id: string): void;
}

/** Creates a set that drops its oldest id when it holds more than `maxIds`. */
export function createRecentIds(maxIds: number): RecentIds {
  const ids = new Set<string>();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > maxIds && oldest !== undefined) ids.delete(oldest);
    },
  };
}
