import type { Relations } from '../../source/relations.ts';
import type { CompiledStatement } from '../../dialect/compile/compile_query.ts';
import { withOverriddenDates } from '../dates.ts';
import { openDialectReader, readRows } from '../dialect_reader.ts';
import { withOverride } from '../query_fields.ts';
import type { QueryContext, QueryKind } from '../query_kind.ts';
import { placeholdersOf, usedVariables, withFilterPath } from './placeholders.ts';
import { dialectQuerySchema, type DialectQuery } from './schema.ts';

/** The limit of a query without LIMIT. */
const defaultRows = 100;

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

/** PostgreSQL's pages. */
const pageBytes = 8_192;

/** Runs a statement once more and measures what it costs in PostgreSQL. */
async function costOf(context: QueryContext, { sql, parameters, memoryOperations }: CompiledStatement) {
  const text = `explain (analyze, buffers, timing, format json) ${sql}`;
  const { rows } = await readRows(context, { text, values: parameters, memoryOperations }, 1);
  const [explained] = JSON.parse(rows[0]?.[0] ?? '[]') as readonly Plan[];
  const plan = (explained?.Plan ?? {}) as Plan;
  return {
    planning_seconds: numberOf(explained ?? {}, 'Planning Time') / 1_000,
    execution_seconds: numberOf(explained ?? {}, 'Execution Time') / 1_000,
    bytes_from_memory: numberOf(plan, 'Shared Hit Blocks') * pageBytes,
    bytes_from_disk: numberOf(plan, 'Shared Read Blocks') * pageBytes,
    temporary_bytes: numberOf(plan, 'Temp Written Blocks') * pageBytes,
    plan: stepOf(plan),
  };
}

/** A query written in the dialect. */
export const dialectQueryKind = (relations: Relations): QueryKind<DialectQuery> => ({
  kind: 'DialectQuery',
  aliases: ['HogQLQuery'],
  schema: dialectQuerySchema,
  // Cached like a daily insight, as in PostHog: a query has no date range that could be read.
  freshness: () => ({ interval: 'day', date_to: null }),
  variables: usedVariables,
  override: (query, override) => ({
    ...query,
    filters: {
      ...query.filters,
      dateRange: withOverriddenDates(query.filters?.dateRange, override),
      properties: withOverride(query.filters?.properties, override.properties),
    },
  }),
  normalizeForCache: ({ query, values, variables, filters, explain }) => ({
    ...{ query, values, variables, filters },
    explain: explain === true ? true : null,
  }),
  run: async (query, context) => {
    const { row_limit } = context;
    const reader = await openDialectReader(context, relations);
    const { statement, rows, totals, hasMore } = await withFilterPath(
      () =>
        reader.read(query.query, {
          placeholders: placeholdersOf(query, context),
          rows: { defaultLimit: Math.min(defaultRows, row_limit), maxRows: row_limit },
          attr: 'query__query',
        }),
      query,
      { ...context, reader, attr: 'query' },
    );
    const { columns, limit, offset, printed } = statement;
    const explain = query.explain === true ? await costOf(context, statement) : null;
    return {
      results: [...rows, ...totals],
      columns: columns.map(({ name }) => name),
      types: columns.map(({ name, typeName }) => [name, typeName]),
      hasMore,
      limit: limit ?? row_limit,
      offset,
      dialect_query: printed,
      ...(explain !== null && { more: { explain } }),
    };
  },
});
