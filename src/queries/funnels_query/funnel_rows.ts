import type { FunnelContext } from './funnel_context.ts';
import { withAttribution } from './attribution.ts';
import { withEntryIntervals } from './entry_intervals.ts';
import type { FunnelPlan } from './plan.ts';
import { readEvents } from './read_events.ts';
import type { FunnelRows } from './rows.ts';
import { passThrough, selectFrom } from './select_from.ts';

/** The events of a funnel, partitioned into walks. @throws QueryError */
export function funnelRows(plan: FunnelPlan, about: FunnelContext): FunnelRows {
  const read = readEvents(plan, about);
  const extraColumns = [
    ...(plan.exclusions.length === 0 ? [] : ['_barred']),
    ...(plan.attribution === null ? [] : ['_own']),
    ...(plan.splitsByEntry ? ['_bucket'] : []),
  ];
  const ids = plan.hasIds ? ['_id'] : [];
  const rows: FunnelRows = plan.isExclusive
    ? { select: read, keys: ['_actor'], order: ['_at', '_steps', ...ids], extraColumns }
    : {
        select: selectFrom(read, [
          ...passThrough(['_actor', '_at', '_steps', ...ids, ...extraColumns]),
          `r._steps = 0 ? ${2 ** plan.definitions.length} : bitAnd(r._steps, -r._steps) as _low`,
        ]),
        keys: ['_actor'],
        order: ['_at', '_low', ...ids],
        extraColumns: ['_steps', ...extraColumns],
      };
  const attributed = withAttribution(plan, rows);
  return plan.walksByEntry ? withEntryIntervals(plan, attributed) : attributed;
}
