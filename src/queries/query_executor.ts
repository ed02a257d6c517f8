import { createHash } from 'node:crypto';
import * as z from 'zod';
import { stringifyJson } from '../client/exact_numbers.ts';
import { compileQuery } from '@exportd/dialect/compile/compile_query';
import type { JsonValue } from '@exportd/dialect/resolve/placeholders';
import { placeholdersOf, usedVariables } from './dialect_query/placeholders.ts';
import { compilerProject, type ProjectSchema, readRows, withFieldPath } from './dialect_reader.ts';
import {
  anyType,
  type InferTypes,
  noticeOfTypes,
  type QueryInference,
  withInferredTypes,
} from './inferred_types.ts';
import { findNameNotice, type NameCache } from './name_notice.ts';
import { QueryError, resultTooLarge } from './query_errors.ts';
import type {
  FiltersOverride,
  OutputResults,
  QueryContext,
  QueryFreshness,
  QueryInterval,
  QueryKind,
  QueryOutput,
  QueryProgress,
  QueryProject,
  UsedVariable,
} from './query_kind.ts';
import type { QueryStatement, Substitute, Warehouse, WarehouseSchema } from './warehouse.ts';

/** Increase when the output of a query changes its shape or meaning. */
const version = 2;

/**
 * The cache key of a query. Two queries of a project share a key only if they must have the same output; the caller and
 * the formatting of the JSON do not matter.
 */
export function cacheKeyOf(query: {
  readonly kind: string;
  /** `digestOf` the parts of the query that its output depends on. */
  readonly digest: string;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly row_limit: number;
}): string {
  const { kind, digest, variables, project, row_limit } = query;
  const form = canonicalJson({ version, kind, query: digest, variables, project, row_limit });
  return `cache_${createHash('md5').update(`query_${form}`).digest('hex')}`;
}

/** A digest of a query, apart from fields that are null and from its tags. A query can be long: computed once. */
export const digestOf = (normalizedForCache: unknown): string =>
  createHash('sha256')
    .update(canonicalJson(withoutNulls(normalizedForCache)))
    .digest('base64url');

/** Records of values for the text of a query, of which null is one. The `values` of a group of filters are a list. */
const valueFields: ReadonlySet<string> = new Set(['values', 'variables']);

/** A query without the members that are null, at any depth: a null member is an absent one. */
function withoutNullMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullMembers);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [
        name,
        valueFields.has(name) && isObject(member) ? member : withoutNullMembers(member),
      ]),
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Drops fields that are null, and `tags`, which only labels a query. */
function withoutNulls(query: unknown): unknown {
  if (!isObject(query)) return query;
  const fields = Object.entries(query).filter(
    ([name, value]) => value !== null && value !== undefined && name !== 'tags',
  );
  return Object.fromEntries(fields);
}

/** JSON with sorted object keys. */
const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_name, inner: unknown) =>
    isObject(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );

/** The query of a request, before it is parsed. */
export interface ParseTask {
  readonly query: Readonly<Record<string, unknown>>;
  readonly filters_override: FiltersOverride | null;
  readonly project: QueryProject;
  readonly now: Date;
}

/** What a process knows of a query without running it: plain data, which another thread may have computed. */
export interface QueryForm {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Digest of the parts that the output depends on. */
  readonly digest: string;
  readonly freshness: QueryFreshness;
  readonly variables: readonly UsedVariable[];
}

/** A text of the dialect that is compiled and not run. */
export interface CheckTask extends ProjectSchema {
  readonly query: string;
  /** Whether properties without a declared type may have any type, because the query infers them when it runs. */
  readonly infersTypes: boolean;
}

/** One run of a query, within its limits. */
export interface RunTask extends Pick<QueryForm, 'kind' | 'query'> {
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly now: Date;
  readonly row_limit: number;
  readonly byte_limit: number;
}

/** The output of a query. */
export interface ComputedOutput {
  /** A JSON object: the response without the fields that the endpoint adds. */
  readonly json: Uint8Array;
  /** Milliseconds until clients should request a refresh. */
  readonly next_refresh_ms: number;
}

/** What the process of a query does for it while it is computed. */
export interface RunEnvironment {
  readonly warehouse: Warehouse;
  readonly inferTypes: InferTypes;
  readonly progress: (progress: QueryProgress) => void;
  /** Ends the computation, at once even if it is busy, where the executor can. */
  readonly signal: AbortSignal;
}

/** Computes queries: parses them, compiles their statements and folds the rows. */
export interface QueryExecutor {
  /** @throws QueryError, QuerySchemaError */
  parse(task: ParseTask): Promise<QueryForm>;
  /** @throws QueryError `dialect_error` if the text does not compile */
  check(task: CheckTask): Promise<void>;
  /** @throws QueryError, the errors of the warehouse, the reason of the signal */
  run(task: RunTask, environment: RunEnvironment): Promise<ComputedOutput>;
  close(): Promise<void>;
}

/** Parses the query of a request and applies the filters of its dashboard. @throws QueryError, QuerySchemaError */
export function parseForm(
  kinds: QueryKinds,
  { query, filters_override, project, now }: ParseTask,
): QueryForm {
  const original = kinds.parse(query);
  const parsed = filters_override ? original.override(filters_override) : original;
  return {
    kind: parsed.kind,
    query: parsed.query as QueryForm['query'],
    digest: digestOf(parsed.normalizedForCache),
    freshness: parsed.freshness(project, now),
    variables: parsed.variables(),
  };
}

/** A query that its kind has parsed. */
interface ParsedQuery {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: unknown;
  /** The parts that the output depends on. */
  readonly normalizedForCache: unknown;
  /** Whether the response says what the query cost, for which its statements run a second time. */
  readonly explains: boolean;
  freshness(project: QueryProject, now: Date): QueryFreshness;
  variables(): readonly UsedVariable[];
  override(filters: FiltersOverride): ParsedQuery;
  run(context: QueryContext): Promise<QueryOutput>;
}

/** A kind whose query type is hidden, so that kinds with different queries fit in one registry. */
interface BoundQueryKind {
  readonly names: readonly string[];
  /** @throws QuerySchemaError */
  parse(query: unknown, path: readonly string[]): ParsedQuery;
}

/** A query that does not match the schema of its kind. */
export class QuerySchemaError extends Error {
  override readonly name = 'QuerySchemaError';
  readonly error: z.ZodError;
  /** Path of the query in the request body. */
  readonly path: readonly string[];

  constructor(error: z.ZodError, path: readonly string[]) {
    super('The query does not match the schema of its kind.');
    this.error = error;
    this.path = path;
  }
}

const explained = z.looseObject({ explain: z.literal(true) });

/** Hides the query type of a kind. */
export function bindQueryKind<Query>(kind: QueryKind<Query>): BoundQueryKind {
  const bind = (query: Query): ParsedQuery => {
    const normalized = kind.normalizeForCache ? kind.normalizeForCache(query) : query;
    const explains = explained.safeParse(query).success;
    return {
      kind: kind.kind,
      query,
      normalizedForCache: explains ? { explained: normalized } : normalized,
      explains,
      freshness: (project, now) => kind.freshness(query, project, now),
      variables: () => kind.variables(query),
      override: (filters) => bind(kind.override(query, filters)),
      run: (context) => kind.run(query, context),
    };
  };
  return {
    names: [kind.kind, ...(kind.aliases ?? [])],
    parse: (query, path) => {
      const parsed = kind.schema.safeParse(query);
      if (!parsed.success) throw new QuerySchemaError(parsed.error, path);
      return bind(parsed.data);
    },
  };
}

/** The query kinds of a process. */
export interface QueryKinds {
  /** Parses the field `query` of a request. @throws QueryError for an unknown kind, QuerySchemaError */
  parse(query: Readonly<Record<string, unknown>>): ParsedQuery;
}

/** Kinds of saved views that only wrap the query in their field `source`. */
const wrappers = new Set(['DataTableNode', 'DataVisualizationNode', 'InsightVizNode']);
const wrapped = z.looseObject({ kind: z.string() });

/** Creates a registry of query kinds. */
export function createQueryKinds(kinds: readonly BoundQueryKind[]): QueryKinds {
  const byName = new Map(kinds.flatMap((kind) => kind.names.map((name) => [name, kind] as const)));
  const parse = (query: Readonly<Record<string, unknown>>, path: readonly string[]): ParsedQuery => {
    if (typeof query.kind === 'string' && wrappers.has(query.kind)) {
      const source = wrapped.safeParse(query.source);
      if (!source.success)
        throw new QueryError('invalid_input', 'This field must be a query.', {
          attr: [...path, 'source'].join('__'),
        });
      return parse(source.data, [...path, 'source']);
    }
    const kind = typeof query.kind === 'string' ? byName.get(query.kind) : undefined;
    if (!kind)
      throw new QueryError(
        'invalid_input',
        `Unknown query kind. Supported kinds: ${[...byName.keys()].sort().join(', ')}.`,
        { attr: [...path, 'kind'].join('__') },
      );
    const present = withoutNullMembers({ ...query, kind: kind.names[0] });
    return kind.parse(present, path);
  };
  return { parse: (query) => parse(query, ['query']) };
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Maximum ages of a cached result in milliseconds, by the query's interval. */
interface AgeLimits {
  /** For `blocking` and `async`. */
  readonly very_fresh: number;
  /** For `lazy_async`. */
  readonly somewhat_fresh: number;
}

/** The limits of PostHog-compatible clients; `none` is for queries without an interval. */
const ageLimits: Readonly<Record<NonNullable<QueryInterval> | 'none', AgeLimits>> = {
  minute: { very_fresh: 5 * minute, somewhat_fresh: 15 * minute },
  hour: { very_fresh: hour, somewhat_fresh: 2 * hour },
  day: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
  week: { very_fresh: day, somewhat_fresh: day },
  month: { very_fresh: day, somewhat_fresh: day },
  none: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
};

/** A date range is closed if it ended this long before its result was computed. */
const closedForMs = 10_000;

/** Whether a result computed at `computedAt` is still fresh enough. Results of closed ranges stay fresh. */
export function isFresh(
  computedAt: Date,
  { interval, date_to }: Pick<QueryFreshness, 'interval' | 'date_to'>,
  now: Date,
  limit: keyof AgeLimits,
): boolean {
  if (date_to !== null && date_to.getTime() < computedAt.getTime() - closedForMs) return true;
  return now.getTime() - computedAt.getTime() < ageLimits[interval ?? 'none'][limit];
}

/** How long clients should wait before they request a refresh, unless the kind sets it. */
const defaultNextRefreshMs = minute;

/** The values of the field `refresh`. */
export const refreshNames = [
  'blocking',
  'async',
  'lazy_async',
  'force_blocking',
  'force_async',
  'force_cache',
] as const;
export type RefreshMode = (typeof refreshNames)[number];

/** Which cached results each mode accepts, and what it does without one. */
export const refreshModes: Readonly<
  Record<
    RefreshMode,
    {
      readonly accepts: keyof AgeLimits | 'anything' | 'nothing';
      readonly otherwise: 'run' | 'start' | 'miss';
    }
  >
> = {
  blocking: { accepts: 'very_fresh', otherwise: 'run' },
  async: { accepts: 'very_fresh', otherwise: 'start' },
  lazy_async: { accepts: 'somewhat_fresh', otherwise: 'start' },
  force_blocking: { accepts: 'nothing', otherwise: 'run' },
  force_async: { accepts: 'nothing', otherwise: 'start' },
  force_cache: { accepts: 'anything', otherwise: 'miss' },
};

/**
 * Compiles a text of the dialect, with `{filters}` that select everything and variables without a value.
 * @throws QueryError `dialect_error`
 */
export function checkQuery({ query, infersTypes, project, now, schema }: CheckTask): void {
  const checked = infersTypes ? { ...schema, inference: anyType } : schema;
  const ofProject = compilerProject({ project, now, schema: checked });
  const asked = { kind: 'DialectQuery', query } as const;
  const variables = Object.fromEntries(usedVariables(asked).map(({ code_name }) => [code_name, null]));
  const placeholders = placeholdersOf(asked, { project, now, variables });
  withFieldPath(null, () => compileQuery(query, ofProject, { placeholders }));
}

/** A query that took longer may be near its timeout: its names are not searched. Milliseconds. */
const maxMsBeforeNames = 5_000;

/**
 * Runs a query and writes its output as JSON.
 * @param names what the thread remembers of names
 * @throws QueryError, the errors of the warehouse
 */
export async function computeOutput(
  kinds: QueryKinds,
  task: RunTask,
  { warehouse, inferTypes, progress }: Omit<RunEnvironment, 'signal'>,
  names: NameCache,
): Promise<ComputedOutput> {
  const { kind, query, variables, project, now, row_limit, byte_limit } = task;
  const parsed = kinds.parse({ ...query, kind });
  const context = { warehouse, project, now, row_limit, byte_limit, variables, progress };
  const startedAt = performance.now();
  const { result, types } = await withInferredTypes(inferTypes, async (inference) => {
    const clock = timedWarehouse(warehouse, inference, startedAt);
    return { clock, ran: await parsed.run({ ...context, warehouse: clock.warehouse }) };
  });
  const { clock, ran } = result;
  const timings = clock.timings();
  const explain = parsed.explains ? await costOf(context, clock.statements) : null;
  const ofNames =
    performance.now() - startedAt > maxMsBeforeNames
      ? null
      : await findNameNotice(parsed.query, context, names).catch(() => null);
  const notices = [noticeOf(clock), noticeOfTypes(types), ofNames];
  const output = {
    ...fieldsOf(ran, row_limit, project.timezone, sentences(notices)),
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

/** What a query has asked of its warehouse. */
interface Asked {
  readonly statements: readonly QueryStatement[];
  /** Those of the schemas that it read. */
  readonly substitutes: readonly Substitute[];
}

/** What a result says of columns that the source lacks; null if no statement depends on one. */
function noticeOf({ statements, substitutes }: Asked): string | null {
  const found = substitutes.find(({ sql, column }) =>
    statements.some(({ text }) => text.includes(sql) && text.replaceAll(sql, '').includes(`"${column}"`)),
  );
  return found?.notice ?? null;
}

/** A warehouse with inferred types whose waits are measured: for its schema, and for the rows of `statements`. */
function timedWarehouse(
  warehouse: Warehouse,
  inference: QueryInference,
  startedAt: number,
): Asked & { readonly warehouse: Warehouse; readonly timings: () => readonly Timing[] } {
  const statements: QueryStatement[] = [];
  const substitutes: Substitute[] = [];
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
    warehouse: {
      schema: async () => {
        const schema = await timed<WarehouseSchema>('schema', warehouse.schema());
        if (schema.substitute !== null) substitutes.push(schema.substitute);
        return { ...schema, inference };
      },
      readRows: (statement, receiver) => {
        statements.push(statement);
        return timed('statements', warehouse.readRows(statement, receiver));
      },
    },
    substitutes,
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

/** @throws QueryError if the JSON is longer than a string can be */
function stringify(output: object, byteLimit: number): string {
  try {
    return stringifyJson(output);
  } catch (error) {
    throw error instanceof RangeError ? resultTooLarge(byteLimit) : error;
  }
}

const isRows = (results: OutputResults): results is readonly unknown[] => Array.isArray(results);

/** The sentences that are not null; null without one. */
const sentences = (all: readonly (string | null)[]): string | null => {
  const present = all.filter((sentence) => sentence !== null);
  return present.length === 0 ? null : present.join(' ');
};

/** The fields of a response that depend on the query alone. */
function fieldsOf(
  output: QueryOutput,
  rowLimit: number,
  timezone: string,
  ofColumns: string | null,
): Record<string, unknown> {
  const { results, columns, types, hasMore = false, limit, offset, dialect_query, more = {} } = output;
  const { notice = null } = output;
  const rows = isRows(results) ? results : [];
  const isCut = rows.length > rowLimit;
  const remaining =
    isCut || (hasMore && rows.length === rowLimit)
      ? `The result is limited to ${rowLimit} rows, and there are more. Use a batch export to get them all.`
      : null;
  return {
    ...more,
    results: isCut ? rows.slice(0, rowLimit) : results,
    columns: columns ?? null,
    types: types ?? null,
    hasMore: hasMore || isCut,
    limit: limit ?? null,
    offset: offset ?? null,
    dialect_query: dialect_query ?? null,
    notice: sentences([ofColumns, notice, remaining]),
    timezone,
  };
}
