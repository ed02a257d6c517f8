import type { Expression } from '../../ast.ts';
import { argument, type CallSite, nodeAt } from '../../compile/functions/site.ts';
import { isTimeZone } from '../../../domain/intervals.ts';
import { bind, sql, type Sql } from '../../sql.ts';

/** Functions whose last argument names the zone that their times are shown in. */
const zoned: Readonly<Record<string, number>> = { toTimeZone: 1, toDateTime: 1, toDateTime64: 2 };

/**
 * The time zone of a time: the argument of a place if it is there, that of `toTimeZone(x, 'zone')` right inside the
 * call, or the project's. @throws DialectError for what is no zone
 */
export function zoneAt(site: CallSite, place: number | null, time = 0): Sql {
  const named = place === null ? undefined : site.values[place];
  if (place !== null && named !== undefined) return zoneNamed(site, named.constant, place);
  const inner = zoneInside(site.nodes[time]);
  return inner === null ? site.statement.timezone : zoneNamed(site, inner, time);
}

function zoneInside(node: Expression | undefined): string | null {
  if (node?.kind !== 'call' || !Object.hasOwn(zoned, node.name.text)) return null;
  const zone = node.arguments[zoned[node.name.text] ?? 0];
  return zone?.kind === 'string' ? zone.value : null;
}

function zoneNamed(site: CallSite, name: unknown, place: number): Sql {
  if (typeof name !== 'string')
    throw site.statement.error(
      "The time zone is a text that is written out, such as 'Europe/Berlin'.",
      nodeAt(site, place),
    );
  if (!isTimeZone(name))
    throw site.statement.error(
      "There is no time zone of this name. Write one of a place, such as 'Europe/Berlin'.",
      nodeAt(site, place),
    );
  return bind(name, 'text');
}

/** A date or a time as the time that clocks of a zone show, without a zone. */
export function localTime(site: CallSite, place: number, zone: Sql): Sql {
  const { sql: piece, type } = argument(site, place);
  return type.kind === 'date'
    ? sql`(${piece})::timestamp`
    : sql`((${piece})::timestamptz at time zone ${zone})`;
}

/** The moment at which clocks of a zone show a time. */
export const momentOf = (local: Sql, zone: Sql): Sql => sql`((${local}) at time zone ${zone})`;
