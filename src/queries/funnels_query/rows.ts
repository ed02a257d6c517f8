import type { Query, Select } from '@exportd/dialect/ast';
import { buildDerivedTable, buildSelect, type TemplateValues, withFrom } from '@exportd/dialect/ast_builders';
import type { FunnelPlan } from './plan.ts';

/** Clauses besides the columns. */
interface SelectFromClauses {
  readonly where?: string | null;
  /** The window `w`. */
  readonly window?: string;
  /** Everything after WHERE, such as `group by r._actor`. */
  readonly rest?: string;
  readonly parts?: TemplateValues;
}

/** Builds a SELECT over a subquery named `r`. */
export function selectFrom(
  inner: Query,
  columns: readonly string[],
  clauses: SelectFromClauses = {},
): Select {
  const { where = null, window, rest = '', parts = {} } = clauses;
  const text = [
    `select ${columns.join(', ')} from r`,
    where === null ? '' : ` where ${where}`,
    rest === '' ? '' : ` ${rest}`,
    window === undefined ? '' : ` window w as (${window})`,
  ].join('');
  return withFrom(buildSelect(text, parts), buildDerivedTable(inner, 'r'));
}

/** Columns of the subquery, unchanged. */
export const passThrough = (names: readonly string[]): readonly string[] =>
  names.map((name) => `r.${name} as ${name}`);

/** Replaces the query of a SELECT's only CTE. */
const withCte = (select: Select, query: Query): Select => ({
  ...select,
  ctes: select.ctes.map((cte) => (cte.kind === 'query_cte' ? { ...cte, query } : cte)),
});

/** The events of walks. */
export interface FunnelRows {
  readonly select: Select;
  /** Columns that identify the walk of a row. */
  readonly keys: readonly string[];
  /** Columns that order the rows of a walk. */
  readonly order: readonly string[];
  /** Further columns. */
  readonly extraColumns: readonly string[];
}

/** All columns of the rows. */
export const columnsOf = ({ keys, order, extraColumns }: FunnelRows): readonly string[] => [
  ...keys,
  ...order,
  ...extraColumns,
];

/** PARTITION BY and ORDER BY of a walk. */
export const windowOf = ({ keys, order }: FunnelRows): string =>
  `partition by ${keys.map((name) => `r.${name}`).join(', ')} order by ${order.map((name) => `r.${name}`).join(', ')}`;

/** Whether only events with the walk's breakdown value do a step. In any order, equal steps are not distinguished. */
function isAttributed({ attribution, order, definitionOfStep }: FunnelPlan, step: number): boolean {
  if (attribution === null || typeof attribution === 'string') return false;
  if (order !== 'unordered') return attribution.step === step;
  return definitionOfStep[attribution.step - 1] === definitionOfStep[step - 1];
}

/** The condition that an event does a step, counted from 1. */
export function matchesStep(plan: FunnelPlan, step: number): string {
  const bit = 2 ** (plan.definitionOfStep[step - 1] ?? 0);
  const conditions = [plan.isExclusive ? `r._steps = ${bit}` : `bitAnd(r._steps, ${bit}) > 0`];
  if (isAttributed(plan, step)) conditions.push('r._own = r._value');
  if (step === 1 && plan.walksByEntry) conditions.push('r._bucket = r._entrance');
  return conditions.join(' and ');
}

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

/** Whether a walk needs to know which events are at the same time as different ones. */
const hasInstants = ({ order, guarded }: FunnelPlan): boolean =>
  order === 'strict' || (order === 'ordered' && guarded.length > 0);

/**
 * Whether rows have a number: with optional steps, it distinguishes the steps of an attempt from those of an older one; in a
 * strict funnel, it tells whether an attempt is over.
 */
export const isNumbered = ({ order, optional }: FunnelPlan): boolean =>
  order === 'strict' || optional.includes(true);

/**
 * Adds the columns `_number` and `_mixed` if the walk needs them. `_mixed` says whether events at the same time do other
 * steps: such events neither end an attempt of a strict funnel nor bar one.
 */
function withPositions(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  if (!hasInstants(plan) && !isNumbered(plan)) return rows;
  const instant = [...rows.keys, '_at'].map((name) => `r.${name}`).join(', ');
  const differs = (name: string): string =>
    `min(r.${name}) over (partition by ${instant}) != max(r.${name}) over (partition by ${instant})`;
  const marks = ['_steps', ...(plan.exclusions.length === 0 ? [] : ['_barred'])];
  const select = selectFrom(rows.select, [
    ...passThrough(columnsOf(rows)),
    // In one SELECT with the numbers, whose order serves all windows.
    `row_number() over (${windowOf(rows)}) as _number`,
    ...(hasInstants(plan) ? [`${marks.map(differs).join(' or ')} as _mixed`] : []),
  ]);
  const extraColumns = [...rows.extraColumns, '_number', ...(hasInstants(plan) ? ['_mixed'] : [])];
  return { ...rows, select, extraColumns };
}

/** The condition that attempts of a strict funnel which have reached a step are over at a row. */
export const endsAttempts = (plan: FunnelPlan, step: number): string =>
  `not r._mixed and not (${matchesStep({ ...plan, attribution: null, walksByEntry: false }, step)})`;

/** The time of an event that must not happen before a step, else null. Bit n of `_barred` stands for step n. */
const barredAt = (plan: FunnelPlan, step: number): string =>
  `if(bitAnd(r._barred, ${2 ** step}) > 0${hasInstants(plan) ? ' and not r._mixed' : ''}, r._at, null)`;

/**
 * Adds the columns `_before<n>` and `_after<n>` for each step n that an exclusion can precede: the time of the last
 * excluded event strictly before the row, and of the next one strictly after it. Events at the same time as a step are
 * neither. Rows that are only exclusions are then dropped. In a strict funnel, where any other event ends an attempt,
 * there is only `_after<n>`, and only for the very next event.
 */
export function withExclusions(plan: FunnelPlan, read: FunnelRows): FunnelRows {
  const rows = withPositions(plan, read);
  if (plan.guarded.length === 0) return rows;
  if (plan.order === 'strict') return withNextExclusion(plan, rows);
  const partition = rows.keys.map((name) => `r.${name}`).join(', ');
  const over = (direction: string): string =>
    `over (partition by ${partition} order by r._at${direction} range between unbounded preceding and interval 1 microsecond preceding)`;
  const names = plan.guarded.flatMap((step) => [`_before${step}`, `_after${step}`]);
  const marked = selectFrom(rows.select, [
    ...passThrough(columnsOf(rows)),
    ...plan.guarded.flatMap((step) => [
      `max(${barredAt(plan, step)}) ${over('')} as _before${step}`,
      `min(${barredAt(plan, step)}) ${over(' desc')} as _after${step}`,
    ]),
  ]);
  const select = selectFrom(marked, passThrough([...columnsOf(rows), ...names]), {
    where: `bitAnd(r._steps, ${2 ** plan.definitions.length - 1}) > 0`,
  });
  return { ...rows, select, extraColumns: [...rows.extraColumns, ...names] };
}

function withNextExclusion(plan: FunnelPlan, rows: FunnelRows): FunnelRows {
  const next = (step: number): string => `lead(${barredAt(plan, step)}) over (${windowOf(rows)})`;
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

/**
 * Attempts of actors to get through the funnel, one row for each event at which an attempt ends. `_t1`, `_t2`, … are
 * the times of its steps, `_depth` is their number, and `_counts` (with exclusions) says whether no exclusion bars it.
 */
export interface Attempts {
  readonly select: Select;
  readonly keys: readonly string[];
  readonly order: readonly string[];
  /** Columns besides keys, order, `_depth`, `_counts` and the times. */
  readonly extraColumns: readonly string[];
}
