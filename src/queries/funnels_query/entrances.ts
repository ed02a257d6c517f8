import { derived, reading, selectOf } from '../../dialect/build.ts';
import type { FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { handedOn, withNamed } from './stage.ts';

/**
 * Rows once for each interval in which their person entered and from which they can still be reached, with the column
 * `_entrance`; a walk of an interval takes only its own events for the first step.
 */
export function withEntrances(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  const keys = rows.keys.map((name) => `r.${name}`);
  const isFirst = matchesStep({ ...plan, walksByEntrance: false }, 1);
  const entrances = selectOf(
    `select ${[...handedOn(rows.keys), 'r._bucket as _entrance'].join(', ')}, min(r._at) as _first, max(r._at) as _last
      from entered as r where ${isFirst} group by ${[...keys, 'r._bucket'].join(', ')}`,
  );
  const same = rows.keys.map((name) => `r.${name} = e.${name}`).join(' and ');
  const read = selectOf(
    `with entered as (select 1) select ${handedOn(columnsOf(rows)).join(', ')}, e._entrance as _entrance
      from entered as r inner join (select 1) as e on ${same}
        and r._at >= e._first and r._at <= e._last + ${plan.windowSeconds}`,
  );
  if (read.from?.kind !== 'join') return rows;
  const select = withNamed(reading(read, { ...read.from, right: derived(entrances, 'e') }), rows.select);
  return { ...rows, select, keys: [...rows.keys, '_entrance'] };
}
