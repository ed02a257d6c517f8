import { buildDerivedTable, withFrom, buildSelect } from '../../dialect/ast_builders.ts';
import type { FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { passThrough, withCte } from './select_from.ts';

/**
 * Duplicates rows for each interval in which their actor entered the funnel and from which they can be reached, with
 * the column `_entrance`. In the walk of an interval, only events of that interval do the first step.
 */
export function withEntryIntervals(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  const keys = rows.keys.map((name) => `r.${name}`);
  const isFirst = matchesStep({ ...plan, walksByEntry: false }, 1);
  const entrances = buildSelect(
    `select ${[...passThrough(rows.keys), 'r._bucket as _entrance'].join(', ')}, min(r._at) as _first, max(r._at) as _last
      from entered as r where ${isFirst} group by ${[...keys, 'r._bucket'].join(', ')}`,
  );
  const same = rows.keys.map((name) => `r.${name} = e.${name}`).join(' and ');
  const read = buildSelect(
    `with entered as (select 1) select ${passThrough(columnsOf(rows)).join(', ')}, e._entrance as _entrance
      from entered as r inner join (select 1) as e on ${same}
        and r._at >= e._first and r._at <= e._last + ${plan.windowSeconds}`,
  );
  if (read.from?.kind !== 'join') return rows;
  const select = withCte(
    withFrom(read, { ...read.from, right: buildDerivedTable(entrances, 'e') }),
    rows.select,
  );
  return { ...rows, select, keys: [...rows.keys, '_entrance'] };
}
