import type { From, Join, Name, Sample, Table } from '../ast.ts';
import { precedence } from './precedence.ts';
import { printNameAfterDot, printName, printTableName } from './names.ts';
import type { Printer } from './printer.ts';

export function printFrom(printer: Printer, from: From): string {
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
