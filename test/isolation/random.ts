/** Random choices. None has a seed: what they meet depends on the time of each request, so that it would repeat nothing. */
import { randomBytes, randomInt } from 'node:crypto';

export const random = {
  /** A whole number below `limit`, which is positive. */
  below: (limit: number): number => randomInt(limit),
  /** Whether something happens whose probability is this. */
  happens: (probability: number): boolean => Math.random() < probability,
  of: <Item>(items: readonly [Item, ...Item[]]): Item => items[randomInt(items.length)] ?? items[0],
  bytes: randomBytes,
};
