/** What the statements of a query cost in PostgreSQL, and what would make them faster. */
import { readRows } from './dialect_reader.ts';
import type { QueryContext } from './query_kind.ts';
import type { QueryStatement } from './warehouse.ts';

/** A step of PostgreSQL's plan, without the names and conditions of the source's own tables and views. */
interface PlanStep {
  readonly step: string;
  readonly rows_expected: number;
  readonly rows: number;
  readonly seconds: number;
  /** Rows that a condition removed. */
  readonly rows_removed?: number;
  readonly steps?: readonly PlanStep[];
}

type Plan = Readonly<Record<string, unknown>>;
const numberOf = (plan: Plan, name: string): number => Number(plan[name] ?? 0);

function stepOf(plan: Plan): PlanStep {
  const loops = numberOf(plan, 'Actual Loops');
  const inner = (plan.Plans ?? []) as readonly Plan[];
  const removed = numberOf(plan, 'Rows Removed by Filter') * loops;
  return {
    step: String(plan['Node Type']),
    rows_expected: numberOf(plan, 'Plan Rows'),
    rows: numberOf(plan, 'Actual Rows') * loops,
    seconds: (numberOf(plan, 'Actual Total Time') * loops) / 1_000,
    ...(removed > 0 && { rows_removed: removed }),
    ...(inner.length > 0 && { steps: inner.map(stepOf) }),
  };
}

/** The rows that all scans of one table read, and what their conditions left of them. */
interface TableScan {
  read: number;
  kept: number;
  /** Properties that the conditions read. */
  readonly properties: Set<string>;
}

/** Adds up the scans below a step by table. The partitions of a table are scanned one by one. */
function addScans(plan: Plan, scans: Map<string, TableScan>): void {
  for (const inner of (plan.Plans ?? []) as readonly Plan[]) addScans(inner, scans);
  const { 'Relation Name': relation, Alias: alias, Filter: filter } = plan;
  if (typeof relation !== 'string' || typeof alias !== 'string') return;
  const table = alias.replace(/(\$\d+)?(_\d+)?$/, '');
  const scan = scans.get(table) ?? { read: 0, kept: 0, properties: new Set() };
  const loops = numberOf(plan, 'Actual Loops');
  scan.kept += numberOf(plan, 'Actual Rows') * loops;
  scan.read += (numberOf(plan, 'Actual Rows') + numberOf(plan, 'Rows Removed by Filter')) * loops;
  if (typeof filter === 'string')
    for (const [, property = ''] of filter.matchAll(/->>? '((?:[^']|'')+)'/g))
      scan.properties.add(property.replaceAll("''", "'"));
  scans.set(table, scan);
}

/** Below this, reading rows takes well under a second. */
const manyRows = 200_000;
/** A result with more rows is a list, which no sum prepared in advance has. */
const maxSummaryRows = 10_000;

const count = (rows: number): string => Math.round(rows).toLocaleString('en-US');

/** What would make the statements faster, for the operator of the source. Names no table and no column of its own. */
function adviceOn(plans: readonly Plan[], temporaryBytes: number): string[] {
  const scans = new Map<string, TableScan>();
  for (const plan of plans) addScans(plan, scans);
  const advice: string[] = [];
  for (const { read, kept, properties } of scans.values()) {
    const on = [...properties].map((property) => `the property ${JSON.stringify(property)}`).join(', ');
    if (read >= manyRows && kept * 10 <= read)
      advice.push(
        `A condition left ${count(kept)} of ${count(read)} rows that were read. An index of the source on the project, ${on || 'the columns of the condition'} and the time would find them without the others.`,
      );
    else if (kept >= manyRows && plans.every((plan) => numberOf(plan, 'Actual Rows') <= maxSummaryRows))
      advice.push(
        `The result needs all ${count(kept)} rows that were read, so no index helps. If you ask this often, let the source keep a materialized view with the counts of each day; if you ask many such questions, ask an analytical engine over exported files.`,
      );
  }
  if (temporaryBytes > 0)
    advice.push(
      `Sorts and hash tables wrote ${count(temporaryBytes / 1_048_576)} MiB to temporary files. EXPORTD_QUERY_WORK_MEM is the memory that each may use.`,
    );
  return advice;
}

/** PostgreSQL's pages. */
const pageBytes = 8_192;

/** Runs the statements of a query once more and measures what they cost in PostgreSQL together. */
export async function costOf(
  context: Pick<QueryContext, 'warehouse' | 'byte_limit' | 'progress'>,
  statements: readonly QueryStatement[],
) {
  const explained: Plan[] = [];
  for (const statement of statements) {
    const text = `explain (analyze, buffers, timing, format json) ${statement.text}`;
    const { rows } = await readRows(context, { ...statement, text }, 1);
    explained.push(...(JSON.parse(rows[0]?.[0] ?? '[]') as readonly Plan[]));
  }
  const plans = explained.map(({ Plan: plan }) => (plan ?? {}) as Plan);
  const sum = (of: readonly Plan[], name: string): number =>
    of.reduce((total, plan) => total + numberOf(plan, name), 0);
  const steps = plans.map(stepOf);
  const [only] = steps;
  const plan =
    only !== undefined && steps.length === 1
      ? only
      : {
          step: `${steps.length} statements`,
          rows_expected: sum(plans, 'Plan Rows'),
          rows: steps.reduce((total, { rows }) => total + rows, 0),
          seconds: steps.reduce((total, { seconds }) => total + seconds, 0),
          steps,
        };
  const temporary_bytes = sum(plans, 'Temp Written Blocks') * pageBytes;
  return {
    planning_seconds: sum(explained, 'Planning Time') / 1_000,
    execution_seconds: sum(explained, 'Execution Time') / 1_000,
    bytes_from_memory: sum(plans, 'Shared Hit Blocks') * pageBytes,
    bytes_from_disk: sum(plans, 'Shared Read Blocks') * pageBytes,
    temporary_bytes,
    advice: adviceOn(plans, temporary_bytes),
    plan,
  };
}
