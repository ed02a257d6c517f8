import { derived, reading, selectOf } from '../../dialect/build.ts';
import type { FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { handedOn, stage, withNamed } from './stage.ts';

/** Rows with the column `_value`: the breakdown's value that their walk counts for. */
export function withAttribution(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  const { attribution } = plan;
  if (attribution === null) return rows;
  if (attribution === 'all_events') {
    const select = stage(rows.select, [...handedOn(columnsOf(rows)), 'r._own as _value']);
    return { ...rows, select, keys: [...rows.keys, '_value'] };
  }
  if (typeof attribution === 'object') return byStep(plan, rows, attribution.step);
  const direction = attribution === 'last_touch' ? ' desc' : '';
  const order = rows.order.map((name) => `r.${name}${direction}`).join(', ');
  const select = stage(rows.select, [...handedOn(columnsOf(rows)), 'first_value(r._own) over w as _value'], {
    window: `partition by r._actor order by r._own = '' ? 1 : 0, ${order}`,
  });
  return { ...rows, select, further: [...rows.further, '_value'] };
}

/** A walk of each value of the step's events, in which that step is of this value alone; '' for who never did it. */
function byStep(plan: FunnelPlan, rows: FunnelRows, step: number): FunnelRows {
  const isStep = matchesStep({ ...plan, attribution: null, walksByEntrance: false }, step);
  const values = selectOf(
    `select distinct r._actor as _actor, r._own as _value from attributed as r where ${isStep}`,
  );
  const columns = [...handedOn(columnsOf(rows)), "ifNull(v._value, '') as _value"];
  const read = selectOf(
    `with attributed as (select 1) select ${columns.join(', ')}
      from attributed as r left join (select 1) as v on r._actor = v._actor`,
  );
  if (read.from?.kind !== 'join') return { ...rows, select: read };
  const select = withNamed(reading(read, { ...read.from, right: derived(values, 'v') }), rows.select);
  return { ...rows, select, keys: [...rows.keys, '_value'] };
}
