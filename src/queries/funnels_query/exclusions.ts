import type { FunnelPlan } from './plan.ts';
import { columnsOf, windowOf, type FunnelRows } from './rows.ts';
import { passThrough, selectFrom } from './select_from.ts';

/** The time of an event that must not happen before a step, else null. Bit n of `_barred` stands for step n. */
const barredAt = (step: number): string => `if(bitAnd(r._barred, ${2 ** step}) > 0, r._at, null)`;

/**
 * Adds the columns `_before<n>` and `_after<n>` for each step n that an exclusion can precede: the time of the last
 * excluded event strictly before the row, and of the next one strictly after it. Events at the same time as a step are
 * neither. Rows that are only exclusions are then dropped. In a strict funnel, where any other event ends an attempt,
 * there is only `_after<n>`, and only for the very next event.
 */
export function withExclusions(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  if (plan.guarded.length === 0) return rows;
  if (plan.order === 'strict') return withNextExclusion(plan, rows);
  const partition = rows.keys.map((name) => `r.${name}`).join(', ');
  const over = (direction: string): string =>
    `over (partition by ${partition} order by r._at${direction} range between unbounded preceding and interval 1 microsecond preceding)`;
  const names = plan.guarded.flatMap((step) => [`_before${step}`, `_after${step}`]);
  const marked = selectFrom(rows.select, [
    ...passThrough(columnsOf(rows)),
    ...plan.guarded.flatMap((step) => [
      `max(${barredAt(step)}) ${over('')} as _before${step}`,
      `min(${barredAt(step)}) ${over(' desc')} as _after${step}`,
    ]),
  ]);
  const select = selectFrom(marked, passThrough([...columnsOf(rows), ...names]), {
    where: `bitAnd(r._steps, ${2 ** plan.definitions.length - 1}) > 0`,
  });
  return { ...rows, select, extraColumns: [...rows.extraColumns, ...names] };
}

function withNextExclusion(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  const next = (step: number): string => `lead(${barredAt(step)}) over (${windowOf(rows)})`;
  const select = selectFrom(rows.select, [
    ...passThrough(columnsOf(rows)),
    ...plan.guarded.map((step) => `if(${next(step)} > r._at, ${next(step)}, null) as _after${step}`),
  ]);
  return {
    ...rows,
    select,
    extraColumns: [...rows.extraColumns, ...plan.guarded.map((step) => `_after${step}`)],
  };
}
