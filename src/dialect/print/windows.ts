import type { Frame, FrameBound, Window } from '../ast.ts';
import { precedence } from './precedence.ts';
import { printWindowName } from './names.ts';
import type { Printer } from './printer.ts';

/** A window specification in parentheses. */
export function printWindow(printer: Printer, { base, partitionBy, orderBy, frame }: Window): string {
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
