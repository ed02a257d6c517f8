import type { CallSite, Emitter } from '../../compile/functions/call_site.ts';
import { sql, type Sql } from '../../sql.ts';

/** Maximum size of an array or string that a call creates. Larger ones would exhaust the database's memory. */
export const maxItems = 100_000;
export const maxCharacters = 1_000_000;

/** A number as a 32-bit integer between two bounds. Null stays null, which LEAST and GREATEST would ignore. */
export const clamped = (number: Sql, min: Sql, max: Sql): Sql =>
  sql`(case when ${number} is not null then least(greatest(${number}, ${min}), ${max}) end)::int4`;

/** Rejects a call whose literals exceed the maximum size. Sizes read from rows are clamped. */
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

/** The value of a number literal, or `otherwise`. */
export function constantNumber(site: CallSite, index: number, otherwise = 0): number {
  const constant = site.values[index]?.constant;
  return typeof constant === 'bigint' || typeof constant === 'number' ? Number(constant) : otherwise;
}

/** The number of items of a range with literal bounds; 0 for other bounds, infinite for a step of 0. */
export function itemsOfRange(site: CallSite): number {
  const { length } = site.values;
  const from = length === 1 ? 0 : constantNumber(site, 0, NaN);
  const to = constantNumber(site, length === 1 ? 0 : 1, NaN);
  const step = length > 2 ? constantNumber(site, 2, NaN) : 1;
  const items = Math.ceil((to - from) / step);
  return Number.isNaN(items) ? 0 : items;
}
