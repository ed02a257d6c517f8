import type { Comparison, Expression, TypeName } from '../ast.ts';
import { quoteString } from '../quoting.ts';
import { printCall } from './calls.ts';
import { isSum, precedence, precedenceOf } from './precedence.ts';
import { printNameAfterDot, printName, printPath } from './names.ts';
import type { Printer } from './printer.ts';
import { printCase, printDictionary, printInterval, printStar, printTemplate, printTrim } from './values.ts';

/** Prints an expression, in parentheses if it binds looser than its context requires. */
export function expressionText(printer: Printer, expression: Expression, minPrecedence: number): string {
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

export function printType(type: TypeName): string {
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
