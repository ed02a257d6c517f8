/** A set of ids that forgets the oldest when it is full. */
export interface RecentIds {
  has(id: string): boolean;
  add(id: string): void;
}

/** Remembers at most so many ids. */
export function createRecentIds(most: number): RecentIds {
  const ids = new Set<string>();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > most && oldest !== undefined) ids.delete(oldest);
    },
  };
}
