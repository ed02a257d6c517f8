import type { FunnelAbout } from './about.ts';
import { withAttribution } from './attribution.ts';
import { withEntrances } from './entrances.ts';
import type { FunnelPlan } from './plan.ts';
import { readEvents } from './read_events.ts';
import type { FunnelRows } from './rows.ts';
import { handedOn, stage } from './stage.ts';

/** The events of a funnel, sorted into walks. @throws QueryInvalid */
export function funnelRows(plan: FunnelPlan, about: FunnelAbout): FunnelRows {
  const read = readEvents(plan, about);
  const further = [
    ...(plan.exclusions.length === 0 ? [] : ['_barred']),
    ...(plan.attribution === null ? [] : ['_own']),
    ...(plan.byEntrance ? ['_bucket'] : []),
  ];
  const ids = plan.hasIds ? ['_id'] : [];
  const rows: FunnelRows = plan.isExclusive
    ? { select: read, keys: ['_actor'], order: ['_at', '_steps', ...ids], further }
    : {
        select: stage(read, [
          ...handedOn(['_actor', '_at', '_steps', ...ids, ...further]),
          `r._steps = 0 ? ${2 ** plan.definitions.length} : bitAnd(r._steps, -r._steps) as _low`,
        ]),
        keys: ['_actor'],
        order: ['_at', '_low', ...ids],
        further: ['_steps', ...further],
      };
  const attributed = withAttribution(plan, rows);
  return plan.walksByEntrance ? withEntrances(plan, attributed) : attributed;
}
