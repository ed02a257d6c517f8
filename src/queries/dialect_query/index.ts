import { checkCohorts } from '../cohorts.ts';
import { withOverriddenDates } from '../dates.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { withOverride } from '../property_filters.ts';
import type { QueryKind } from '../query_kind.ts';
import { placeholdersOf, usedVariables, withFilterPath } from './placeholders.ts';
import { dialectQuerySchema, type DialectQuery } from './schema.ts';

/** The limit of a query without LIMIT. */
const defaultRows = 100;

const cutNotice = `A query of this UNION, EXCEPT or INTERSECT has more than ${defaultRows} rows, and only ${defaultRows} of them were read. Give it a LIMIT.`;

/** A query written in the dialect. */
export const dialectQueryKind: QueryKind<DialectQuery> = {
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
  normalizeForCache: ({ query, values, variables, filters }) => ({ query, values, variables, filters }),
  run: async (query, context) => {
    const { row_limit } = context;
    const reader = await openDialectReader(context);
    await checkCohorts(query, reader);
    const { statement, rows, totals, hasMore, hasCutBranch } = await withFilterPath(
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
    return {
      results: [...rows, ...totals],
      columns: columns.map(({ name }) => name),
      types: columns.map(({ name, typeName }) => [name, typeName]),
      hasMore: hasMore || hasCutBranch,
      ...(hasCutBranch && { notice: cutNotice }),
      limit: limit ?? row_limit,
      offset,
      dialect_query: printed,
    };
  },
};
