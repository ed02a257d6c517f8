import { compileQuery } from '../dialect/compile/compile_query.ts';
import { placeholdersOf, usedVariables } from './dialect_query/placeholders.ts';
import { compilerProject, readRows, withFieldPath } from './dialect_reader.ts';
import { resultTooLarge } from './query_errors.ts';
import {
  type CheckTask,
  type ComputedOutput,
  defaultNextRefreshMs,
  type QueryKinds,
  type RunEnvironment,
  type RunTask,
} from './query_executor.ts';
import type {
  OutputResults,
  QueryConnection,
  QueryContext,
  QueryOutput,
  QueryStatement,
} from './query_kind.ts';

/**
 * Compiles a text of the dialect, with `{filters}` that select everything and variables without a value.
 * @throws QueryError `dialect_error`
 */
export function checkQuery({ query, project, now, schema }: CheckTask): void {
  const ofProject = compilerProject({ project, now, schema });
  const asked = { kind: 'DialectQuery', query } as const;
  const variables = Object.fromEntries(usedVariables(asked).map(({ code_name }) => [code_name, null]));
  const placeholders = placeholdersOf(asked, { project, now, variables });
  withFieldPath(null, () => compileQuery(query, ofProject, { placeholders }));
}

/** Runs a query and writes its output as JSON. @throws QueryError, the errors of the connection */
export async function computeOutput(
  kinds: QueryKinds,
  task: RunTask,
  { connection, progress }: Pick<RunEnvironment, 'connection' | 'progress'>,
): Promise<ComputedOutput> {
  const { kind, query, variables, project, now, row_limit, byte_limit } = task;
  const parsed = kinds.parse({ ...query, kind });
  const clock = timedConnection(connection);
  const context = { connection: clock.connection, project, now, row_limit, byte_limit, variables, progress };
  const ran = await parsed.run(context);
  const timings = clock.timings();
  const explain = parsed.explains ? await costOf({ ...context, connection }, clock.statements) : null;
  const output = {
    ...fieldsOf(ran, row_limit, project.timezone),
    timings,
    ...(explain !== null && { explain }),
  };
  const { next_refresh_ms = defaultNextRefreshMs } = parsed.freshness(project, now);
  const json = new TextEncoder().encode(stringify(output, byte_limit));
  if (json.byteLength > byte_limit) throw resultTooLarge(byte_limit);
  return { json, next_refresh_ms };
}

/** A part of the time that a query took: its name and seconds. */
interface Timing {
  readonly k: 'schema' | 'statements' | 'computation' | 'total';
  readonly t: number;
}

/** A connection whose waits are measured: for the schema of the source, and for the rows of `statements`. */
function timedConnection(connection: QueryConnection): {
  readonly connection: QueryConnection;
  readonly timings: () => readonly Timing[];
  readonly statements: readonly QueryStatement[];
} {
  const statements: QueryStatement[] = [];
  const startedAt = performance.now();
  const waited = { schema: 0, statements: 0 };
  const timed = async <Result>(k: keyof typeof waited, work: Promise<Result>): Promise<Result> => {
    const from = performance.now();
    try {
      return await work;
    } finally {
      waited[k] += performance.now() - from;
    }
  };
  return {
    connection: {
      query: (text, values) => timed('schema', connection.query(text, values)),
      readRows: (statement, receiver) => {
        statements.push(statement);
        return timed('statements', connection.readRows(statement, receiver));
      },
    },
    statements,
    timings: () => {
      const total = performance.now() - startedAt;
      const seconds = (ms: number): number => Math.round(Math.max(ms, 0)) / 1_000;
      return [
        { k: 'schema', t: seconds(waited.schema) },
        { k: 'statements', t: seconds(waited.statements) },
        { k: 'computation', t: seconds(total - waited.schema - waited.statements) },
        { k: 'total', t: seconds(total) },
      ];
    },
  };
}

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
async function costOf(
  context: Pick<QueryContext, 'connection' | 'byte_limit' | 'progress'>,
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

/** @throws QueryError if the JSON is longer than a string can be */
function stringify(output: object, byteLimit: number): string {
  try {
    return JSON.stringify(output);
  } catch (error) {
    throw error instanceof RangeError ? resultTooLarge(byteLimit) : error;
  }
}

const isRows = (results: OutputResults): results is readonly unknown[] => Array.isArray(results);

/** The fields of a response that depend on the query alone. */
function fieldsOf(output: QueryOutput, rowLimit: number, timezone: string): Record<string, unknown> {
  const { results, columns, types, hasMore = false, limit, offset, dialect_query, more = {} } = output;
  const rows = isRows(results) ? results : [];
  const isCut = rows.length > rowLimit;
  const isFull = isCut || (hasMore && rows.length === rowLimit);
  return {
    ...more,
    results: isCut ? rows.slice(0, rowLimit) : results,
    columns: columns ?? null,
    types: types ?? null,
    hasMore: hasMore || isCut,
    limit: limit ?? null,
    offset: offset ?? null,
    dialect_query: dialect_query ?? null,
    // How to get the remaining rows.
    notice: isFull
      ? `The result is limited to ${rowLimit} rows, and there are more. Use a batch export to get them all.`
      : null,
    timezone,
  };
}
