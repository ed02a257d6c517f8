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
  for (const { index, min, max, argumentCount } of ranges ?? []) {
    const [constant, node] = [values[index]?.constant, nodes[index]];
    if (node === undefined || (argumentCount !== undefined && argumentCount !== nodes.length)) continue;
    const isNumber = typeof constant === 'bigint' || typeof constant === 'number';
    if (what === 'argument' && !isNumber) continue;
    const number = isNumber ? Number(constant) : NaN;
    const isWhole = what === 'argument' || typeof constant === 'bigint';
    if (isWhole && number >= min && number <= max) continue;
    throw statement.error(
      `${what === 'argument' ? 'Argument' : 'Parameter'} ${index + 1} of '${name}' must be an integer ${max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`}.`,
      node,
    );
  }
}
