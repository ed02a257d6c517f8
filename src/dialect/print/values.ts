import type { Case, Dictionary, Interval, Star, Template, Trim } from '../ast.ts';
import { escapeQuoted } from '../quoting.ts';
import { precedence } from './precedence.ts';
import { printName, printPath } from './names.ts';
import type { Printer } from './printer.ts';

export function printTemplate(printer: Printer, { parts }: Template): string {
  const printed = parts.map((part) =>
    part.kind === 'string'
      ? escapeQuoted(part.value, "'", '{')
      : `{${printer.expression(part, precedence.any)}}`,
  );
  return `f'${printed.join('')}'`;
}

export function printDictionary(printer: Printer, { entries }: Dictionary): string {
  const printed = entries.map(
    ({ key, value }) =>
      `${printer.expression(key, precedence.or)}: ${printer.expression(value, precedence.any)}`,
  );
  return `{${printed.join(', ')}}`;
}

export function printStar(printer: Printer, { table, exclude, replace }: Star): string {
  const star = table.length === 0 ? '*' : `${printPath(table)}.*`;
  const without = exclude.length === 0 ? '' : ` EXCLUDE (${exclude.map(printName).join(', ')})`;
  const changed = replace.map((alias) => printer.expression(alias, precedence.item)).join(', ');
  return `${star}${without}${changed === '' ? '' : ` REPLACE (${changed})`}`;
}

export function printCase(printer: Printer, { subject, branches, otherwise }: Case): string {
  const print = (expression: Case['otherwise']): string =>
    expression === null ? '' : printer.expression(expression, precedence.any);
  const cases = branches.map(({ when, then }) => ` WHEN ${print(when)} THEN ${print(then)}`).join('');
  const head = subject === null ? 'CASE' : `CASE ${print(subject)}`;
  return `${head}${cases}${otherwise === null ? '' : ` ELSE ${print(otherwise)}`} END`;
}

export function printInterval(printer: Printer, { amount, unit }: Interval): string {
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

export function printTrim(printer: Printer, { side, characters, operand }: Trim): string {
  const what = characters === null ? '' : ` ${printer.expression(characters, precedence.any)}`;
  return `TRIM(${side.toUpperCase()}${what} FROM ${printer.expression(operand, precedence.any)})`;
}
