import type { CallSite, Emitter } from '../../compile/functions/call_site.ts';

/** Items of the longest array, and characters of the longest text, that a call makes; more would fill the database's memory. */
export const maxItems = 100_000;
export const maxCharacters = 1_000_000;

/** Refuses a call that says by itself that it makes more than is made; one that learns it from rows is cut. */
export const withMaxSize =
  (max: number, things: string, countOf: (site: CallSite) => number, emitter: Emitter): Emitter =>
  (site) => {
    if (countOf(site) > max)
      throw site.statement.error(
        `'${site.name}' can create at most ${max.toLocaleString('en')} ${things}.`,
        site.node,
      );
    return emitter(site);
  };

/** A number that is written out, or another where there is none. */
export function constantNumber(site: CallSite, index: number, otherwise = 0): number {
  const constant = site.values[index]?.constant;
  return typeof constant === 'bigint' || typeof constant === 'number' ? Number(constant) : otherwise;
}

/** How many items a range has whose bounds are written out; 0 where rows say it, no end of them with steps of nothing. */
export function itemsOfRange(site: CallSite): number {
  const { length } = site.values;
  const from = length === 1 ? 0 : constantNumber(site, 0, NaN);
  const to = constantNumber(site, length === 1 ? 0 : 1, NaN);
  const step = length > 2 ? constantNumber(site, 2, NaN) : 1;
  const items = Math.ceil((to - from) / step);
  return Number.isNaN(items) ? 0 : items;
}
