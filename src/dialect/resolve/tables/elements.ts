import { bind, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalarType } from '../../types.ts';
import { column, type Column } from '../relation.ts';

/** What PostHog computes of the chain of elements of an event, by the name of its column (schema of `sharded_events`). */
const patterns: Readonly<Record<string, string>> = {
  elements_chain_href: '[:"]href="([^"]*)"',
  elements_chain_texts: '[:"]text="([^"]*)"',
  elements_chain_ids: '[:"]attr_id="([^"]*)"',
  elements_chain_elements: '(?:^|;)(a|button|form|input|select|textarea|label)(?:[.:]|$)',
};

export const elementColumns: readonly string[] = Object.keys(patterns);

/** The column of a name: the first link as a string, the others as arrays of distinct strings. Undefined for other names. */
export function elementColumn(name: string, chain: () => Sql): Column | undefined {
  const pattern = Object.hasOwn(patterns, name) ? patterns[name] : undefined;
  if (pattern === undefined) return undefined;
  const matched = bind(pattern, 'text');
  if (name === 'elements_chain_href')
    return column(sql`coalesce(substring(${chain()} from ${matched}), '')`, scalarType('string'));
  return column(
    sql`(select coalesce(jsonb_agg(one.text order by one.first), '[]'::jsonb) from (select parts[1] as text, min(at) as first
      from regexp_matches(${chain()}, ${matched}, 'g') with ordinality as found(parts, at) group by 1) as one)`,
    arrayOf(scalarType('string')),
  );
}
