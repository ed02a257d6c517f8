import type {
  Cte,
  Expression,
  From,
  GroupBy,
  Join,
  Limit,
  LimitBy,
  Name,
  OrderItem,
  Query,
  Sample,
  Select,
  SetOperation,
  Table,
} from '../ast.ts';
import {
  expressionText,
  precedence,
  type Printer,
  printName,
  printNameAfterDot,
  printTableName,
  printWindow,
} from './expressions.ts';

function printFrom(printer: Printer, from: From): string {
  switch (from.kind) {
    case 'table':
      return printTable(from);
    case 'table_function': {
      const read = from.arguments.map((argument) => printer.expression(argument, precedence.any)).join(', ');
      return `${printTableName(from.name)}(${read})${printAlias(from.alias)}`;
    }
    case 'derived_table':
      return `(${printer.query(from.query)})${printAlias(from.alias)}`;
    case 'join':
      return printJoin(printer, from);
  }
}

const printAlias = (alias: Name | null): string => (alias === null ? '' : ` AS ${printTableName(alias)}`);

function printTable({ path, alias, final, sample }: Table): string {
  const [first, ...rest] = path;
  const name = [first === undefined ? '' : printTableName(first), ...rest.map(printNameAfterDot)].join('.');
  const table = `${name}${printAlias(alias)}${final ? ' FINAL' : ''}${sample === null ? '' : printSample(sample)}`;
  // Parenthesized, so that a following OFFSET is not parsed as part of SAMPLE.
  return sample?.offset === null ? `(${table})` : table;
}

function printSample({ ratio, offset }: Sample): string {
  const share = ({ numerator, denominator }: Sample['ratio']): string =>
    denominator === null ? numerator.text : `${numerator.text}/${denominator.text}`;
  return ` SAMPLE ${share(ratio)}${offset === null ? '' : ` OFFSET ${share(offset)}`}`;
}

function printJoin(printer: Printer, { type, strictness, left, right, constraint }: Join): string {
  const words = [type, strictness, 'join'].filter((word) => word !== null).join(' ');
  const printed = printFrom(printer, right);
  const joined = `${printFrom(printer, left)} ${words.toUpperCase()} ${right.kind === 'join' ? `(${printed})` : printed}`;
  if (constraint === null) return joined;
  if (constraint.kind === 'on')
    return `${joined} ON ${printer.expression(constraint.condition, precedence.any)}`;
  return `${joined} USING (${constraint.columns.map(printName).join(', ')})`;
}

function queryText(printer: Printer, query: Query): string {
  return query.kind === 'select' ? printSelect(printer, query) : printSetOperation(printer, query);
}

function printSetOperation(printer: Printer, { operator, operands, orderBy, limit }: SetOperation): string {
  const tail = [printOrderBy(printer, orderBy), printLimit(printer, limit)].filter((part) => part !== '');
  const printed = operands.map((operand, index) => {
    const isLast = index === operands.length - 1;
    const text = queryText(printer, operand);
    return operand.kind === 'set_operation' || (isLast && tail.length > 0) ? `(${text})` : text;
  });
  return [printed.join(` ${operator.toUpperCase()} `), ...tail].join(' ');
}

function printSelect(printer: Printer, select: Select): string {
  const items = itemsOf(printer);
  const any = (expression: Expression): string => printer.expression(expression, precedence.any);
  const clause = (word: string, expression: Expression | null): string =>
    expression === null ? '' : `${word} ${any(expression)}`;
  const { ctes, distinctOn, arrayJoin, windows } = select;
  const named = windows.map(({ name, window }) => `${printName(name)} AS ${printWindow(printer, window)}`);
  return [
    ctes.length === 0 ? '' : `WITH ${ctes.map((cte) => printCte(printer, cte)).join(', ')}`,
    'SELECT',
    select.distinct ? 'DISTINCT' : '',
    distinctOn.length === 0 ? '' : `ON (${items(distinctOn)})`,
    items(select.columns),
    select.from === null ? '' : `FROM ${printFrom(printer, select.from)}`,
    arrayJoin === null ? '' : `${arrayJoin.left ? 'LEFT ' : ''}ARRAY JOIN ${items(arrayJoin.items)}`,
    clause('PREWHERE', select.prewhere),
    clause('WHERE', select.where),
    printGroupBy(printer, select.groupBy),
    clause('HAVING', select.having),
    clause('QUALIFY', select.qualify),
    named.length === 0 ? '' : `WINDOW ${named.join(', ')}`,
    printOrderBy(printer, select.orderBy),
    printLimitBy(printer, select.limitBy),
    printLimit(printer, select.limit),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

const itemsOf =
  (printer: Printer) =>
  (items: readonly Expression[]): string =>
    items.map((item) => printer.expression(item, precedence.item)).join(', ');

function printCte(printer: Printer, cte: Cte): string {
  if (cte.kind === 'query_cte') return `${printName(cte.name)} AS (${printer.query(cte.query)})`;
  return `${printer.expression(cte.expression, precedence.any)} AS ${printTableName(cte.name)}`;
}

function printGroupBy(printer: Printer, groupBy: GroupBy | null): string {
  if (groupBy === null) return '';
  const items = groupBy.items
    .map((item) =>
      item.kind === 'grouping_set'
        ? `(${itemsOf(printer)(item.items)})`
        : printer.expression(item, precedence.item),
    )
    .join(', ');
  const totals = groupBy.withTotals ? ' WITH TOTALS' : '';
  if (groupBy.mode === 'all') return `GROUP BY ALL${totals}`;
  if (groupBy.mode === 'plain') return `GROUP BY ${items}${totals}`;
  if (groupBy.mode === 'grouping_sets') return `GROUP BY GROUPING SETS (${items})${totals}`;
  return `GROUP BY ${groupBy.mode.toUpperCase()}(${items})${totals}`;
}

function printOrderBy(printer: Printer, items: readonly OrderItem[]): string {
  return items.length === 0 ? '' : `ORDER BY ${items.map(printer.orderItem).join(', ')}`;
}

function printOrderItem(printer: Printer, { expression, descending, nulls, fill }: OrderItem): string {
  const bound = (word: string, value: Expression | null): string =>
    value === null ? '' : ` ${word} ${printer.expression(value, precedence.any)}`;
  const filled =
    fill === null
      ? ''
      : ` WITH FILL${bound('FROM', fill.from)}${bound('TO', fill.to)}${bound('STEP', fill.step)}`;
  const nullsOrder = nulls === null ? '' : ` NULLS ${nulls.toUpperCase()}`;
  return `${printer.expression(expression, precedence.any)}${descending ? ' DESC' : ''}${nullsOrder}${filled}`;
}

function printLimitBy(printer: Printer, limitBy: LimitBy | null): string {
  if (limitBy === null) return '';
  const { count, offset, by } = limitBy;
  const from = offset === null ? '' : ` OFFSET ${printer.expression(offset, precedence.any)}`;
  return `LIMIT ${printer.expression(count, precedence.any)}${from} BY ${itemsOf(printer)(by)}`;
}

function printLimit(printer: Printer, limit: Limit | null): string {
  if (limit === null) return '';
  const { count, percent, offset, withTies } = limit;
  const first =
    count === null ? '' : `LIMIT ${printer.expression(count, precedence.any)}${percent ? ' PERCENT' : ''}`;
  const second = offset === null ? '' : `OFFSET ${printer.expression(offset, precedence.any)}`;
  return [first, second, withTies ? 'WITH TIES' : ''].filter((part) => part !== '').join(' ');
}

const printer: Printer = {
  expression: (expression, minPrecedence) => expressionText(printer, expression, minPrecedence),
  query: (query) => queryText(printer, query),
  orderItem: (item) => printOrderItem(printer, item),
};

/** Prints a query as canonical text on one line. Parsing it yields an equal tree, apart from spans. */
export const printQuery = (query: Query): string => queryText(printer, query);

/** Prints an expression, with its alias if it has one, as canonical text. */
export const printExpression = (expression: Expression): string =>
  printer.expression(expression, precedence.item);
