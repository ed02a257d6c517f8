import type { Attempts } from './attempts.ts';
import { withExclusions } from './exclusions.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { handedOn, stage } from './stage.ts';

/** A step among those of the same definition: the n-th of them is done by the n-th nearest event. */
interface Slot {
  readonly step: number;
  readonly definition: number;
  readonly place: number;
}

/**
 * Walks through a funnel whose steps may be done in any order: at each event the steps are counted of which there is an
 * event within the window that ends here, and their times are those of the latest ones. For a trend, whose attempts count
 * for the interval in which they begin, the window begins at the event instead.
 */
export function walkInAnyOrder(plan: FunnelPlan, read: FunnelRows): Attempts {
  const rows = withExclusions(plan, read);
  const slots = slotsOf(plan);
  const window = windowOfDirection(plan, rows);
  let select = rows.select;
  let names = columnsOf(rows);
  for (const place of numbersBetween(1, Math.max(...slots.map((slot) => slot.place)))) {
    const layer = slots.filter((slot) => slot.place === place);
    const nearest = plan.byEntrance ? 'min' : 'max';
    select = stage(
      select,
      [
        ...handedOn(names),
        ...layer.map(
          (slot) =>
            `${nearest}(if(${matchesStep(plan, slot.step)}, ${eventBefore(slot)}, null)) over w as ${other(slot)}`,
        ),
      ],
      { window: `${window} rows between unbounded preceding and 1 preceding` },
    );
    names = [...names, ...layer.map(other)];
  }
  select = stage(select, [
    ...handedOn(columnsOf(rows)),
    ...slots.map((slot) => `${timeText(plan, slot)} as _t${slot.step}`),
  ]);
  const times = slots.map(({ step }) => `_t${step}`);
  const isAny = slots.map(({ step }) => `(${matchesStep(plan, step)})`).join(' or ');
  const counted = stage(
    select,
    [
      ...handedOn([...columnsOf(rows), ...times]),
      `${times.map((name) => `if(r.${name} is null, 0, 1)`).join(' + ')} as _depth`,
    ],
    { where: typeof plan.attribution === 'object' && plan.attribution !== null ? isAny : null },
  );
  return finished(plan, rows, window, counted);
}

const other = ({ definition, place }: Slot): string => `_d${definition}_${place}`;
const eventBefore = (slot: Slot): string =>
  slot.place === 1 ? 'r._at' : `r.${other({ ...slot, place: slot.place - 1 })}`;

function slotsOf({ definitionOfStep }: FunnelPlan): readonly Slot[] {
  return definitionOfStep.map((definition, index) => ({
    step: index + 1,
    definition,
    place: definitionOfStep.slice(0, index + 1).filter((one) => one === definition).length,
  }));
}

function windowOfDirection({ byEntrance }: FunnelPlan, { keys, order }: FunnelRows): string {
  const direction = byEntrance ? ' desc' : '';
  return `partition by ${keys.map((name) => `r.${name}`).join(', ')} order by ${order.map((name) => `r.${name}${direction}`).join(', ')}`;
}

/** When the slot's event was, the row's own among them; null outside of the window. */
function timeText(plan: FunnelPlan, slot: Slot): string {
  const time = `if(${matchesStep(plan, slot.step)}, ${eventBefore(slot)}, r.${other(slot)})`;
  const window = String(plan.windowSeconds);
  const isOpen = plan.byEntrance ? `${time} <= r._at + ${window}` : `${time} + ${window} >= r._at`;
  return `if(${isOpen}, ${time}, null)`;
}

function finished(plan: FunnelPlan, rows: FunnelRows, window: string, select: Attempts['select']): Attempts {
  const { byEntrance, guarded, length, windowSeconds } = plan;
  const keys = byEntrance ? [...rows.keys, '_entrance'] : rows.keys;
  const further = rows.further.filter((name) => name === '_value');
  const times = numbersBetween(1, length).map((step) => `_t${step}`);
  const columns = [
    ...handedOn([...rows.keys, ...rows.order, ...further, ...times, '_depth']),
    ...(byEntrance ? ['r._bucket as _entrance'] : []),
  ];
  const [guard] = guarded;
  if (guard === undefined) {
    if (byEntrance) return { select: stage(select, columns), keys, order: rows.order, further };
    // Only rows at which more steps are done than ever before can be an actor's deepest attempt.
    const compared = stage(select, [...columns, 'max(r._depth) over w as _most'], {
      window: `${window} rows between unbounded preceding and 1 preceding`,
    });
    return {
      select: stage(compared, handedOn([...rows.keys, ...rows.order, ...further, ...times, '_depth']), {
        where: 'r._depth > r._most',
      }),
      keys,
      order: rows.order,
      further,
    };
  }
  const own = times.map((name) => `ifNull(r.${name}, r._at)`).join(', ');
  const open = `+ ${windowSeconds}`;
  const isBroken = byEntrance
    ? `if(r._depth = ${length}, r._after${guard} < greatest(${own}), r._after${guard} <= r._at ${open})`
    : `r._before${guard} > least(${own}) or r._depth < ${length} and r._after${guard} <= least(${own}) ${open}`;
  return {
    select: stage(select, [...columns, `not ifNull(${isBroken}, false) as _counts`]),
    keys,
    order: rows.order,
    further,
  };
}
