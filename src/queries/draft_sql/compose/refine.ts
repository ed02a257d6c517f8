import type { Query, Select } from '../../../dialect/ast.ts';
import { buildSelect } from '../../../dialect/ast_builders.ts';
import { parseQuery } from '../../../dialect/parser/parse.ts';
import { emptyDraft, type Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { conjunction } from './conjunction.ts';
import { filterCondition } from './filters.ts';
import { queryTables, type QueryTable } from './query_table.ts';
import { periodCondition } from './times.ts';

/** Whether a draft only narrows rows: `only the last 7 days`, `limit to 10`. */
export const isRefinement = ({ filters, period, limit, ...rest }: Draft): boolean =>
  (filters.length > 0 || period !== null || limit !== null) &&
  JSON.stringify({ ...rest, filters: [], period: null, limit: null }, Object.keys(emptyDraft).sort()) ===
    JSON.stringify(emptyDraft, Object.keys(emptyDraft).sort());

/** Narrows a query. @throws QueryError `unclear` unless it is a plain SELECT from one table */
export function refinedQuery(current: string, { filters, period, limit }: Draft): Select {
  const query = parsed(current);
  const table = query?.kind === 'select' ? queryTableFrom(query) : undefined;
  if (query?.kind !== 'select' || table === undefined)
    throw unclear('This prompt cannot be applied to the current query. Describe the whole query instead.');
  return {
    ...query,
    where: conjunction([
      query.where,
      period && periodCondition(period, table.time),
      ...filters.map((filter) => filterCondition(filter, table)),
    ]),
    limit: limit === null ? query.limit : buildSelect(`select 1 from events limit ${limit}`).limit,
  };
}

function parsed(current: string): Query | undefined {
  try {
    return parseQuery(current);
  } catch (error) {
    if (Error.isError(error) && error.name === 'DialectError') return undefined;
    throw error;
  }
}

const queryTableFrom = ({ from }: Select): QueryTable | undefined =>
  from?.kind === 'table'
    ? queryTables.find(({ name: table }) => from.path.length === 1 && from.path[0]?.text === table)
    : undefined;
