import { buildDerivedTable, withFrom, buildSelect } from '../../dialect/ast_builders.ts';
import type { FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { passThrough, selectFrom, withCte } from './select_from.ts';

/** Adds the column `_value`: the breakdown value that a row's walk is attributed to. */
export function withAttribution(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  const { attribution } = plan;
  if (attribution === null) return rows;
  if (attribution === 'all_events') {
    const select = selectFrom(rows.select, [...passThrough(columnsOf(rows)), 'r._own as _value']);
    return { ...rows, select, keys: [...rows.keys, '_value'] };
  }
  if (typeof attribution === 'object') return byStep(plan, rows, attribution.step);
  const direction = attribution === 'last_touch' ? ' desc' : '';
  const order = rows.order.map((name) => `r.${name}${direction}`).join(', ');
  const select = selectFrom(
    rows.select,
    [...passThrough(columnsOf(rows)), 'first_value(r._own) over w as _value'],
    {
      window: `partition by r._actor order by r._own = '' ? 1 : 0, ${order}`,
    },
  );
  return { ...rows, select, extraColumns: [...rows.extraColumns, '_value'] };
}

/**
 * One walk for each value of the step's events, in which only events with that value do the step; '' for actors that
 * never did it.
 */
function byStep(plan: FunnelPlan, rows: FunnelRows, step: number): FunnelRows {
  const isStep = matchesStep({ ...plan, attribution: null, walksByEntry: false }, step);
  const values = buildSelect(
    `select distinct r._actor as _actor, r._own as _value from attributed as r where ${isStep}`,
  );
  const columns = [...passThrough(columnsOf(rows)), "ifNull(v._value, '') as _value"];
  const read = buildSelect(
    `with attributed as (select 1) select ${columns.join(', ')}
      from attributed as r left join (select 1) as v on r._actor = v._actor`,
  );
  if (read.from?.kind !== 'join') return { ...rows, select: read };
  const select = withCte(
    withFrom(read, { ...read.from, right: buildDerivedTable(values, 'v') }),
    rows.select,
  );
  return { ...rows, select, keys: [...rows.keys, '_value'] };
}
