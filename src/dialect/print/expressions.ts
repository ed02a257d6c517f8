import type { Comparison, Expression, TypeName } from '../ast.ts';
import { writeQuoted } from '../quoted_text.ts';
import { printCall } from './calls.ts';
import { isSum, level, levelOf } from './levels.ts';
import { printMemberName, printName, printPath } from './names.ts';
import type { Printer } from './printer.ts';
import { printCase, printDictionary, printInterval, printStar, printTemplate, printTrim } from './values.ts';

/** An expression as text, in brackets where it is looser than its place. */
export function printExpression(printer: Printer, expression: Expression, needed: number): string {
  const text = printBare(printer, expression);
  return levelOf(expression) < needed ? `(${text})` : text;
}

function printBare(printer: Printer, node: Expression): string {
  const print = printer.expression;
  const items = (list: readonly Expression[]): string =>
    list.map((item) => print(item, level.item)).join(', ');
  switch (node.kind) {
    case 'number':
      return node.text;
    case 'string':
      return writeQuoted(node.value, "'");
    case 'boolean':
      return node.value ? 'true' : 'false';
    case 'null':
      return 'NULL';
    case 'time':
      return `${node.type.toUpperCase()} ${writeQuoted(node.text, "'")}`;
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
      return `${object(printer, node.object)}${node.nullish ? '?.' : '.'}${printMemberName(node.name)}`;
    case 'element':
      return `${object(printer, node.object)}.${node.position.text}`;
    case 'index':
      return `${object(printer, node.object)}${node.nullish ? '?.' : ''}[${print(node.index, level.any)}]`;
    case 'slice': {
      const [from, to] = [node.from, node.to].map((bound) => (bound === null ? '' : print(bound, level.or)));
      return `${object(printer, node.object)}[${from ?? ''}:${to ?? ''}]`;
    }
    case 'star':
      return printStar(printer, node);
    case 'columns':
      return `COLUMNS(${node.pattern === null ? items(node.items) : writeQuoted(node.pattern.value, "'")})`;
    case 'unary':
      if (node.operator === 'not') return `NOT ${print(node.operand, level.not)}`;
      // Two signs side by side would begin a comment.
      return `-${print(node.operand, node.operand.kind === 'unary' ? level.value : level.sign)}`;
    case 'arithmetic': {
      const own = isSum(node.operator) ? level.sum : level.product;
      return `${print(node.left, own)} ${node.operator} ${print(node.right, own + 1)}`;
    }
    case 'comparison':
      return printComparison(printer, node);
    case 'logical': {
      const own = node.operator === 'or' ? level.or : level.and;
      return node.operands.map((operand) => print(operand, own + 1)).join(` ${node.operator.toUpperCase()} `);
    }
    case 'nullish':
      return `${print(node.left, level.nullish)} ?? ${print(node.right, level.comparison)}`;
    case 'is_null':
      return `${print(node.operand, level.comparison)} IS ${node.negated ? 'NOT ' : ''}NULL`;
    case 'between': {
      const [low, high] = [node.low, node.high].map((bound) => print(bound, level.sum));
      const operand = print(node.operand, level.comparison);
      return `${operand} ${node.negated ? 'NOT ' : ''}BETWEEN ${low ?? ''} AND ${high ?? ''}`;
    }
    case 'conditional': {
      const [then, otherwise] = [node.then, node.otherwise].map((branch) => print(branch, level.any));
      return `${print(node.condition, level.or)} ? ${then ?? ''} : ${otherwise ?? ''}`;
    }
    case 'case':
      return printCase(printer, node);
    case 'cast':
      return `${node.safe ? 'TRY_CAST' : 'CAST'}(${print(node.operand, level.any)} AS ${printType(node.type)})`;
    case 'interval':
      return printInterval(printer, node);
    case 'extract':
      return `EXTRACT(${node.unit.toUpperCase()} FROM ${print(node.operand, level.any)})`;
    case 'trim':
      return printTrim(printer, node);
    case 'lambda': {
      const [first, ...rest] = node.parameters.map(printName);
      const parameters =
        first !== undefined && rest.length === 0 ? first : `(${[first, ...rest].join(', ')})`;
      return `${parameters} -> ${print(node.body, level.any)}`;
    }
    case 'call':
      return printCall(printer, node);
    case 'alias':
      return `${print(node.expression, level.any)} AS ${printName(node.name)}`;
    case 'subquery':
      return `(${printer.query(node.query)})`;
    case 'placeholder':
      return `{${print(node.expression, level.any)}}`;
  }
}

/** What stands before a point or a bracket; a number would take the point for its own. */
function object(printer: Printer, expression: Expression): string {
  const text = printer.expression(expression, level.value);
  return expression.kind === 'number' ? `(${text})` : text;
}

function printComparison(printer: Printer, { operator, left, right }: Comparison): string {
  const word = operator.toUpperCase();
  return `${printer.expression(left, level.comparison)} ${word} ${printer.expression(right, level.sum)}`;
}

export function printType(type: TypeName): string {
  const name = printMemberName(type.name);
  if (type.arguments.length === 0) return name;
  const printed = type.arguments.map((argument) => {
    if (argument.kind === 'number') return argument.text;
    if (argument.kind === 'string') return writeQuoted(argument.value, "'");
    if (argument.kind === 'type') return printType(argument);
    return `${printMemberName(argument.name)} ${printType(argument.type)}`;
  });
  return `${name}(${printed.join(', ')})`;
}
