import type {
  Call,
  Case,
  Comparison,
  Cte,
  Dictionary,
  Expression,
  Frame,
  FrameBound,
  From,
  GroupBy,
  Interval,
  Join,
  Limit,
  LimitBy,
  Name,
  OrderItem,
  Query,
  Sample,
  Select,
  SetOperation,
  Star,
  Table,
  Template,
  Trim,
  TypeName,
  Window,
} from './ast.ts';
import {
  escapeQuoted,
  keywordsRequiringAs,
  operatorFunctions,
  quotedAsFirstName,
  quoteString,
  reservedWords,
} from './query_text.ts';

/** Operator precedence, loosest first. An expression below the precedence of its context needs parentheses. */
const precedence = {
  item: 0,
  any: 1,
  or: 2,
  and: 3,
  not: 4,
  nullish: 5,
  comparison: 6,
  sum: 7,
  product: 8,
  sign: 9,
  value: 10,
} as const;

function precedenceOf(expression: Expression): number {
  switch (expression.kind) {
    case 'alias':
    case 'lambda':
      return precedence.item;
    case 'conditional':
      return precedence.any;
    case 'logical':
      return expression.operator === 'or' ? precedence.or : precedence.and;
    case 'unary':
      return expression.operator === 'not' ? precedence.not : precedence.sign;
    case 'nullish':
      return precedence.nullish;
    case 'comparison':
    case 'is_null':
    case 'between':
      return precedence.comparison;
    case 'arithmetic':
      return isSum(expression.operator) ? precedence.sum : precedence.product;
    default:
      return precedence.value;
  }
}

const isSum = (operator: string): boolean => operator === '+' || operator === '-';

/** The mutually recursive printing rules. They are injected, so that files do not import in a circle. */
interface Printer {
  /** Parenthesizes an expression of lower precedence than `precedence`. */
  readonly expression: (expression: Expression, precedence: number) => string;
  readonly query: (query: Query) => string;
  readonly orderItem: (item: OrderItem) => string;
}

const plain = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u;

/** Keywords at the start of a window, which cannot be the name of its base window. */
const windowWords: ReadonlySet<string> = new Set(['PARTITION', 'ORDER', 'ROWS', 'RANGE', 'GROUPS']);

const printed = (name: Name, keywords: ReadonlySet<string>): string =>
  plain.test(name.text) && !keywords.has(name.text.toUpperCase()) ? name.text : quoteString(name.text, '`');

/** A name, quoted with backticks if necessary. */
const printName = (name: Name): string => printed(name, reservedWords);

/** The name or alias of a table, which must not be confused with the next clause. */
const printTableName = (name: Name): string => printed(name, keywordsRequiringAs);

/** A name after a dot, where any word is allowed. */
const printNameAfterDot = (name: Name): string => printed(name, new Set());

const printWindowName = (name: Name): string => printed(name, windowWords);

/** A path such as `person.properties.email`. */
function printPath([first, ...rest]: readonly Name[]): string {
  if (first === undefined) return '';
  return [printed(first, quotedAsFirstName), ...rest.map(printNameAfterDot)].join('.');
}

/** Keywords whose parentheses are not those of a call. */
const specialCalls: ReadonlySet<string> = new Set([
  ...[...reservedWords].filter((word) => !operatorFunctions.has(word)),
  'COLUMNS',
  'INTERVAL',
  'ROLLUP',
  'CUBE',
]);

/** The name of a function in a call. */
const printFunctionName = (name: Name): string => printed(name, specialCalls);

/** A name that is always quoted. */
const quoteName = (name: Name): string => quoteString(name.text, '`');

/** A window specification in parentheses. */
function printWindow(printer: Printer, { base, partitionBy, orderBy, frame }: Window): string {
  const parts: string[] = [];
  if (base !== null) parts.push(printWindowName(base));
  if (partitionBy.length > 0)
    parts.push(
      `PARTITION BY ${partitionBy.map((item) => printer.expression(item, precedence.any)).join(', ')}`,
    );
  if (orderBy.length > 0) parts.push(`ORDER BY ${orderBy.map(printer.orderItem).join(', ')}`);
  if (frame !== null) parts.push(printFrame(printer, frame));
  return `(${parts.join(' ')})`;
}

function printFrame(printer: Printer, { unit, first, last }: Frame): string {
  const from = printBound(printer, first);
  const bounds = last === null ? from : `BETWEEN ${from} AND ${printBound(printer, last)}`;
  return `${unit.toUpperCase()} ${bounds}`;
}

function printBound(printer: Printer, { direction, offset }: FrameBound): string {
  if (direction === 'current row') return 'CURRENT ROW';
  if (offset === null) return `UNBOUNDED ${direction.toUpperCase()}`;
  const text = printer.expression(offset, precedence.item);
  const isPlain = offset.kind === 'number' || offset.kind === 'interval';
  return `${isPlain ? text : `(${text})`} ${direction.toUpperCase()}`;
}

/** A call with its clauses. */
function printCall(printer: Printer, call: Call): string {
  const { parameters, distinct, orderBy, nulls, filter, over } = call;
  const first = parameters === null ? '' : `(${printArguments(printer, parameters)})`;
  const order = orderBy.length === 0 ? '' : ` ORDER BY ${orderBy.map(printer.orderItem).join(', ')}`;
  const inside = `${distinct ? 'DISTINCT ' : ''}${printArguments(printer, call.arguments)}${order}`;
  const behind = [
    nulls === null ? '' : ` ${nulls.toUpperCase()} NULLS`,
    filter === null ? '' : ` FILTER (WHERE ${printer.expression(filter, precedence.any)})`,
    over === null ? '' : ` OVER ${over.kind === 'name' ? printName(over) : printWindow(printer, over)}`,
  ];
  return `${functionName(call)}${first}(${inside})${behind.join('')}`;
}

/** `cast` with plain arguments parses as a call; otherwise its name must be quoted. */
function functionName(call: Call): string {
  if (!/^(try_)?cast$/i.test(call.name.text)) return printFunctionName(call.name);
  const isPlain =
    call.arguments.length > 1 &&
    call.arguments.every(({ kind }) => kind !== 'star' && kind !== 'alias') &&
    !call.distinct &&
    call.orderBy.length === 0 &&
    [call.parameters, call.nulls, call.filter, call.over].every((clause) => clause === null);
  return isPlain ? call.name.text : quoteName(call.name);
}

/** After other names, `a, x -> x` would parse as one lambda with two parameters. */
function printArguments(printer: Printer, items: readonly Expression[]): string {
  return items
    .map((item, index) => {
      const text = printer.expression(item, precedence.item);
      return index > 0 && item.kind === 'lambda' && item.parameters.length === 1
        ? text.replace(/^(.*?) ->/, '($1) ->')
        : text;
    })
    .join(', ');
}

function printTemplate(printer: Printer, { parts }: Template): string {
  const printed = parts.map((part) =>
    part.kind === 'string'
      ? escapeQuoted(part.value, "'", '{')
      : `{${printer.expression(part, precedence.any)}}`,
  );
  return `f'${printed.join('')}'`;
}

function printDictionary(printer: Printer, { entries }: Dictionary): string {
  const printed = entries.map(
    ({ key, value }) =>
      `${printer.expression(key, precedence.or)}: ${printer.expression(value, precedence.any)}`,
  );
  return `{${printed.join(', ')}}`;
}

function printStar(printer: Printer, { table, exclude, replace }: Star): string {
  const star = table.length === 0 ? '*' : `${printPath(table)}.*`;
  const without = exclude.length === 0 ? '' : ` EXCLUDE (${exclude.map(printName).join(', ')})`;
  const changed = replace.map((alias) => printer.expression(alias, precedence.item)).join(', ');
  return `${star}${without}${changed === '' ? '' : ` REPLACE (${changed})`}`;
}

function printCase(printer: Printer, { subject, branches, otherwise }: Case): string {
  const print = (expression: Case['otherwise']): string =>
    expression === null ? '' : printer.expression(expression, precedence.any);
  const cases = branches.map(({ when, then }) => ` WHEN ${print(when)} THEN ${print(then)}`).join('');
  const head = subject === null ? 'CASE' : `CASE ${print(subject)}`;
  return `${head}${cases}${otherwise === null ? '' : ` ELSE ${print(otherwise)}`} END`;
}

function printInterval(printer: Printer, { amount, unit }: Interval): string {
  const isPlain =
    amount.kind === 'string' ||
    (amount.kind === 'number' && /^\d/.test(amount.text)) ||
    (amount.kind === 'unary' &&
      amount.operator === '-' &&
      amount.operand.kind === 'number' &&
      /^\d/.test(amount.operand.text));
  const text = printer.expression(amount, precedence.item);
  return `INTERVAL ${isPlain ? text : `(${text})`} ${unit.toUpperCase()}`;
}

function printTrim(printer: Printer, { side, characters, operand }: Trim): string {
  const what = characters === null ? '' : ` ${printer.expression(characters, precedence.any)}`;
  return `TRIM(${side.toUpperCase()}${what} FROM ${printer.expression(operand, precedence.any)})`;
}

/** Prints an expression, in parentheses if it binds looser than its context requires. */
function expressionText(printer: Printer, expression: Expression, minPrecedence: number): string {
  const text = printUnparenthesized(printer, expression);
  return precedenceOf(expression) < minPrecedence ? `(${text})` : text;
}

function printUnparenthesized(printer: Printer, node: Expression): string {
  const print = printer.expression;
  const items = (list: readonly Expression[]): string =>
    list.map((item) => print(item, precedence.item)).join(', ');
  switch (node.kind) {
    case 'number':
      return node.text;
    case 'string':
      return quoteString(node.value, "'");
    case 'boolean':
      return node.value ? 'true' : 'false';
    case 'null':
      return 'NULL';
    case 'time':
      return `${node.type.toUpperCase()} ${quoteString(node.text, "'")}`;
    case 'template':
      return printTemplate(printer, node);
    case 'array':
      return `[${items(node.items)}]`;
    case 'tuple':
      return node.items.length === 1 ? `(${items(node.items)},)` : `(${items(node.items)})`;
    case 'dictionary':
      return printDictionary(printer, node);
    case 'field':
      return printPath(node.path);
    case 'member':
      return `${printObject(printer, node.object)}${node.nullish ? '?.' : '.'}${printNameAfterDot(node.name)}`;
    case 'element':
      return `${printObject(printer, node.object)}.${node.position.text}`;
    case 'index':
      return `${printObject(printer, node.object)}${node.nullish ? '?.' : ''}[${print(node.index, precedence.any)}]`;
    case 'slice': {
      const [from, to] = [node.from, node.to].map((bound) =>
        bound === null ? '' : print(bound, precedence.or),
      );
      return `${printObject(printer, node.object)}[${from ?? ''}:${to ?? ''}]`;
    }
    case 'star':
      return printStar(printer, node);
    case 'columns':
      return `COLUMNS(${node.pattern === null ? items(node.items) : quoteString(node.pattern.value, "'")})`;
    case 'unary':
      if (node.operator === 'not') return `NOT ${print(node.operand, precedence.not)}`;
      // `--` would start a comment.
      return `-${print(node.operand, node.operand.kind === 'unary' ? precedence.value : precedence.sign)}`;
    case 'arithmetic': {
      const operatorPrecedence = isSum(node.operator) ? precedence.sum : precedence.product;
      return `${print(node.left, operatorPrecedence)} ${node.operator} ${print(node.right, operatorPrecedence + 1)}`;
    }
    case 'comparison':
      return printComparison(printer, node);
    case 'logical': {
      const operatorPrecedence = node.operator === 'or' ? precedence.or : precedence.and;
      return node.operands
        .map((operand) => print(operand, operatorPrecedence + 1))
        .join(` ${node.operator.toUpperCase()} `);
    }
    case 'nullish':
      return `${print(node.left, precedence.nullish)} ?? ${print(node.right, precedence.comparison)}`;
    case 'is_null':
      return `${print(node.operand, precedence.comparison)} IS ${node.negated ? 'NOT ' : ''}NULL`;
    case 'between': {
      const [low, high] = [node.low, node.high].map((bound) => print(bound, precedence.sum));
      const operand = print(node.operand, precedence.comparison);
      return `${operand} ${node.negated ? 'NOT ' : ''}BETWEEN ${low ?? ''} AND ${high ?? ''}`;
    }
    case 'conditional': {
      const [then, otherwise] = [node.then, node.otherwise].map((branch) => print(branch, precedence.any));
      return `${print(node.condition, precedence.or)} ? ${then ?? ''} : ${otherwise ?? ''}`;
    }
    case 'case':
      return printCase(printer, node);
    case 'cast':
      return `${node.safe ? 'TRY_CAST' : 'CAST'}(${print(node.operand, precedence.any)} AS ${printType(node.type)})`;
    case 'interval':
      return printInterval(printer, node);
    case 'extract':
      return `EXTRACT(${node.unit.toUpperCase()} FROM ${print(node.operand, precedence.any)})`;
    case 'trim':
      return printTrim(printer, node);
    case 'lambda': {
      const [first, ...rest] = node.parameters.map(printName);
      const parameters =
        first !== undefined && rest.length === 0 ? first : `(${[first, ...rest].join(', ')})`;
      return `${parameters} -> ${print(node.body, precedence.any)}`;
    }
    case 'call':
      return printCall(printer, node);
    case 'alias':
      return `${print(node.expression, precedence.any)} AS ${printName(node.name)}`;
    case 'subquery':
      return `(${printer.query(node.query)})`;
    case 'placeholder':
      return `{${print(node.expression, precedence.any)}}`;
  }
}

/** The object before a dot or bracket. A number would absorb the dot. */
function printObject(printer: Printer, expression: Expression): string {
  const text = printer.expression(expression, precedence.value);
  return expression.kind === 'number' ? `(${text})` : text;
}

function printComparison(printer: Printer, { operator, left, right }: Comparison): string {
  const word = operator.toUpperCase();
  return `${printer.expression(left, precedence.comparison)} ${word} ${printer.expression(right, precedence.sum)}`;
}

function printType(type: TypeName): string {
  const name = printNameAfterDot(type.name);
  if (type.arguments.length === 0) return name;
  const printed = type.arguments.map((argument) => {
    if (argument.kind === 'number') return argument.text;
    if (argument.kind === 'string') return quoteString(argument.value, "'");
    if (argument.kind === 'type') return printType(argument);
    return `${printNameAfterDot(argument.name)} ${printType(argument.type)}`;
  });
  return `${name}(${printed.join(', ')})`;
}

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
