import {
  type Call,
  type Expression,
  findNodes,
  type From,
  type Node,
  type Query,
  type Select,
} from '../../dialect/ast.ts';
import { DialectError, type QueryText } from '../../dialect/dialect_error.ts';
import type { Model } from '../../domain/batch_export.ts';

const rowByRowHint =
  'A batch export reads rows one by one. Its query can only select columns and filter rows.';

const clockHint = 'Exporting an interval again must return the same rows. Filter by columns instead.';

/** Functions whose result depends on the clock. */
const clockFunctions: ReadonlySet<string> = new Set(['now', 'today', 'yesterday', 'current_date']);

const isCall = (node: Node): node is Call => node.kind === 'call';
const isSubquery = (node: Node): node is Extract<Expression, { kind: 'subquery' }> =>
  node.kind === 'subquery';

/**
 * Returns the SELECT of an export's query, which may only select columns of its model and filter rows.
 * @throws DialectError for an unsupported clause, at its position
 */
export function requireRowSelect(query: Query, model: Model, source: QueryText): Select {
  const reject = (what: string, node: Node, advice: string = rowByRowHint): never => {
    throw new DialectError(source, `${what} in the query of a batch export.`, {
      start: node.start,
      end: node.end,
      suggestion: advice,
    });
  };
  if (query.kind === 'set_operation')
    return reject(`${query.operator.toUpperCase().replaceAll('_', ' ')} is not supported`, query);
  const { groupBy, arrayJoin, having, qualify, limit, limitBy } = query;
  const [cte, order, window] = [query.ctes[0], query.orderBy[0], query.windows[0]];
  if (cte) reject('WITH is not supported', cte);
  if (query.distinct) reject('DISTINCT is not supported', query);
  requireTable(query.from, model, query, reject);
  if (arrayJoin) reject('ARRAY JOIN is not supported', arrayJoin);
  if (groupBy) reject('GROUP BY is not supported', groupBy);
  if (having) reject('HAVING is not supported', having);
  if (qualify) reject('QUALIFY is not supported', qualify);
  if (window) reject('WINDOW is not supported', window);
  if (order) reject('ORDER BY is not supported', order, 'Rows are exported in the order of insertion.');
  if (limitBy) reject('LIMIT BY is not supported', limitBy);
  if (limit)
    reject('LIMIT is not supported', limit, 'Every row of an interval is exported; filter with WHERE.');
  const problem = rowByRowProblem(query);
  if (problem) reject(problem.what, problem.at, problem.advice);
  return query;
}

/** What an expression in a query or filter of an export cannot contain, and what to do instead. */
interface RowByRowProblem {
  readonly what: string;
  readonly at: Node;
  readonly advice: string;
}

/** The first part that needs other rows or a clock; undefined if there is none. */
export function rowByRowProblem(node: Node): RowByRowProblem | undefined {
  const [subquery] = findNodes(node, isSubquery);
  if (subquery) return { what: 'A subquery is not supported', at: subquery, advice: rowByRowHint };
  for (const call of findNodes(node, isCall)) {
    const name = call.name.text;
    const what = `${name}() is not supported`;
    if (clockFunctions.has(name.toLowerCase())) return { what, at: call, advice: clockHint };
    if (name === 'arrayJoin') return { what, at: call, advice: rowByRowHint };
  }
  return undefined;
}

function requireTable(
  from: From | null,
  model: Model,
  query: Select,
  reject: (what: string, node: Node, advice?: string) => never,
): void {
  const only = `Write FROM ${model}.`;
  if (from === null) return reject('FROM is missing', query, only);
  switch (from.kind) {
    case 'join':
      return reject(
        'JOIN is not supported',
        from,
        model === 'events' ? 'Read the properties of the person as person.properties.….' : rowByRowHint,
      );
    case 'derived_table':
      return reject('A subquery is not supported', from, only);
    case 'table_function':
      return reject('A table function is not supported', from, only);
    case 'table': {
      const name = from.path.map(({ text }) => text).join('.');
      if (name !== model)
        reject(`The table \`${name}\` is not available`, from, `This batch export reads ${model}.`);
      if (from.sample) reject('SAMPLE is not supported', from.sample);
    }
  }
}
