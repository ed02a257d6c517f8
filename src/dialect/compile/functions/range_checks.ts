import type { Expression } from '../../ast.ts';
import type { IntegerRange } from '../../functions/ranges.ts';
import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';

/** Values with the nodes that they were written as, and what they are called in errors. */
export interface RangeCheckedValues {
  readonly values: readonly Value[];
  readonly nodes: readonly Expression[];
  readonly what: 'argument' | 'parameter';
}

/**
 * Parameters are whole numbers that are written out; of arguments those alone are looked at that are.
 * @throws DialectError for a number outside of its range
 */
export function checkRanges(
  name: string,
  ranges: readonly IntegerRange[] | undefined,
  { values, nodes, what }: RangeCheckedValues,
  statement: Statement,
): void {
  for (const { index: index, min: least, max: most, argumentCount: ofArguments } of ranges ?? []) {
    const [constant, node] = [values[index]?.constant, nodes[index]];
    if (node === undefined || (ofArguments !== undefined && ofArguments !== nodes.length)) continue;
    const isNumber = typeof constant === 'bigint' || typeof constant === 'number';
    if (what === 'argument' && !isNumber) continue;
    const number = isNumber ? Number(constant) : NaN;
    const isWhole = what === 'argument' || typeof constant === 'bigint';
    if (isWhole && number >= least && number <= most) continue;
    throw statement.error(
      `The ${what} ${index + 1} of '${name}' is a whole number from ${least}${most === Infinity ? '' : ` to ${most}`}.`,
      node,
    );
  }
}
