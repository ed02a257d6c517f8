import type { Call, Expression } from '../ast.ts';
import { precedence } from './precedence.ts';
import { printFunctionName, printName, quoteName } from './names.ts';
import type { Printer } from './printer.ts';
import { printWindow } from './windows.ts';

/** A call with its clauses. */
export function printCall(printer: Printer, call: Call): string {
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
