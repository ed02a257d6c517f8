import type { Call, Expression, From, Query, Select } from '../../dialect/ast.ts';
import type { Node } from '../../dialect/ast_node.ts';
import { DialectError } from '../../dialect/dialect_error.ts';
import type { QueryText } from '../../dialect/query_text.ts';
import { findNodes } from '../../dialect/walk.ts';
import type { Model } from '../../domain/batch_export.ts';

const rowByRow = 'A batch export reads its rows one by one; it may choose columns and filter.';

/** Functions that give another answer whenever they are asked. */
const clockFunctions: ReadonlySet<string> = new Set(['now', 'today', 'yesterday', 'current_date']);

const isCall = (node: Node): node is Call => node.kind === 'call';
const isSubquery = (node: Node): node is Extract<Expression, { kind: 'subquery' }> =>
  node.kind === 'subquery';

/**
 * The SELECT of an export's query, which chooses columns of its model's rows and filters them, and does nothing else.
 * @throws DialectError that names what is more than that.
 */
export function requireRowSelect(query: Query, model: Model, source: QueryText): Select {
  const refuse = (what: string, node: Node, advice: string = rowByRow): never => {
    throw new DialectError(source, `${what} in the query of a batch export.`, {
      start: node.start,
      end: node.end,
      suggestion: advice,
    });
  };
  if (query.kind === 'set_operation')
    return refuse(`${query.operator.toUpperCase().replaceAll('_', ' ')} is not supported`, query);
  const { groupBy, arrayJoin, having, qualify, limit, limitBy } = query;
  const [cte, order, window, subquery] = [
    query.ctes[0],
    query.orderBy[0],
    query.windows[0],
    findNodes(query, isSubquery)[0],
  ];
  if (cte) refuse('WITH is not supported', cte);
  if (query.distinct) refuse('DISTINCT is not supported', query);
  requireTable(query.from, model, query, refuse);
  if (arrayJoin) refuse('ARRAY JOIN is not supported', arrayJoin);
  if (groupBy) refuse('GROUP BY is not supported', groupBy);
  if (having) refuse('HAVING is not supported', having);
  if (qualify) refuse('QUALIFY is not supported', qualify);
  if (window) refuse('WINDOW is not supported', window);
  if (order) refuse('ORDER BY is not supported', order, 'Files are in the order in which rows arrived.');
  if (limitBy) refuse('LIMIT BY is not supported', limitBy);
  if (limit)
    refuse('LIMIT is not supported', limit, 'Every row of an interval is exported; filter with WHERE.');
  if (subquery) refuse('A subquery is not supported', subquery);
  for (const call of findNodes(query, isCall)) {
    const name = call.name.text;
    if (clockFunctions.has(name.toLowerCase()))
      refuse(
        `${name}() is not supported`,
        call,
        'An interval that is exported again has to give the same rows; filter by the columns of the rows.',
      );
    if (name === 'arrayJoin') refuse('arrayJoin() is not supported', call);
  }
  return query;
}

function requireTable(
  from: From | null,
  model: Model,
  query: Select,
  refuse: (what: string, node: Node, advice?: string) => never,
): void {
  const only = `Write FROM ${model}.`;
  if (from === null) return refuse('FROM is missing', query, only);
  switch (from.kind) {
    case 'join':
      return refuse(
        'JOIN is not supported',
        from,
        model === 'events' ? "A person's properties are person.properties.…." : rowByRow,
      );
    case 'derived_table':
      return refuse('A subquery is not supported', from, only);
    case 'table_function':
      return refuse('A table function is not supported', from, only);
    case 'table': {
      const name = from.path.map(({ text }) => text).join('.');
      if (name !== model) refuse(`The table \`${name}\` cannot be read`, from, `This one exports ${model}.`);
      if (from.sample) refuse('SAMPLE is not supported', from.sample);
    }
  }
}
